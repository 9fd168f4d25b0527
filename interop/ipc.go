package interop

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// encodeRows writes a record batch as an Arrow IPC stream in base64.
func encodeRows(rec arrow.RecordBatch) (string, error) {
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(rec.Schema()))
	if err := w.Write(rec); err != nil {
		return "", fmt.Errorf("interop: encode rows: %w", err)
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("interop: encode rows: %w", err)
	}
	return base64.StdEncoding.EncodeToString(buf.Bytes()), nil
}

// decodeRows reads what an engine sent: an IPC stream or an IPC file.
func decodeRows(s string) (recs []arrow.RecordBatch, err error) {
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			for _, r := range recs {
				r.Release()
			}
		}
	}()
	if bytes.HasPrefix(data, []byte("ARROW1")) {
		r, err := ipc.NewFileReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		for i := range r.NumRecords() {
			rec, err := r.RecordBatchAt(i)
			if err != nil {
				return recs, err
			}
			recs = append(recs, rec)
		}
		return recs, nil
	}
	r, err := ipc.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer r.Release()
	for {
		rec, err := r.Read()
		if err == io.EOF {
			return recs, nil
		}
		if err != nil {
			return recs, err
		}
		rec.Retain()
		recs = append(recs, rec)
	}
}
