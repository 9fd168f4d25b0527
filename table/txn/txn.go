package txn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"github.com/rehome-db/rehome/table"
)

// format is the form that is written.
const format = 1

// envelope is the document of a transaction.
type envelope struct {
	Format      int               `json:"format"`
	ID          string            `json:"id"`
	ReadVersion uint64            `json:"read_version"`
	Version     uint64            `json:"version"`
	Kind        string            `json:"kind"`
	Operation   json.RawMessage   `json:"operation,omitempty"`
	Properties  map[string]string `json:"properties,omitempty"`
}

// operations are those that are kept with all they say, by their kinds.
var operations = func() map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, op := range []table.Operation{
		table.Append{}, table.Delete{}, table.Update{}, table.Rewrite{}, table.CreateIndex{}, table.ReserveFragments{}, table.Merge{},
		table.Project{}, table.Restore{}, table.Overwrite{}, table.UpdateConfig{}, table.DataReplacement{}, table.DataOverlay{},
		table.UpdateMemWALState{}, table.UpdateBases{}, table.Clone{},
	} {
		out[op.Kind()] = reflect.TypeOf(op)
	}
	return out
}()

// Marshal returns the transaction as one JSON document. A transaction without an
// operation is an error.
func Marshal(t table.Transaction) ([]byte, error) {
	if t.Operation == nil {
		return nil, fmt.Errorf("txn: transaction %q has no operation", t.ID)
	}
	doc := envelope{
		Format: format, ID: t.ID, ReadVersion: t.ReadVersion, Version: t.Version, Kind: t.Operation.Kind(), Properties: t.Properties,
	}
	if typ, known := operations[doc.Kind]; known && reflect.TypeOf(t.Operation) == typ {
		op := t.Operation
		if x, ok := op.(table.CreateIndex); ok {
			op = table.CreateIndex{New: withoutHandles(x.New), Removed: withoutHandles(x.Removed)}
		}
		var err error
		if doc.Operation, err = json.Marshal(op); err != nil {
			return nil, fmt.Errorf("txn: transaction %q: %w", t.ID, err)
		}
	}
	return json.Marshal(doc)
}

func withoutHandles(in []table.IndexMeta) []table.IndexMeta {
	if in == nil {
		return nil
	}
	out := make([]table.IndexMeta, len(in))
	for i, m := range in {
		m.Handle = nil
		out[i] = m
	}
	return out
}

// Unmarshal reads what Marshal made.
func Unmarshal(data []byte) (table.Transaction, error) {
	var doc envelope
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil {
		return table.Transaction{}, table.Corruptf("txn: no transaction: %v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return table.Transaction{}, table.Corruptf("txn: something follows the transaction %q", doc.ID)
	}
	switch {
	case doc.Format < 1 || doc.Kind == "":
		return table.Transaction{}, table.Corruptf("txn: no transaction: it has format %d and kind %q", doc.Format, doc.Kind)
	case doc.Format > format:
		return table.Transaction{}, table.Unsupportedf("txn: transaction %q has format %d, and this release reads up to %d: use a newer one", doc.ID, doc.Format, format)
	}
	t := table.Transaction{
		ID: doc.ID, ReadVersion: doc.ReadVersion, Version: doc.Version, Properties: doc.Properties, Operation: table.Unknown{Name: doc.Kind},
	}
	typ, known := operations[doc.Kind]
	if !known || doc.Operation == nil {
		return t, nil
	}
	op := reflect.New(typ)
	if err := json.Unmarshal(doc.Operation, op.Interface()); err != nil {
		return table.Transaction{}, table.Corruptf("txn: transaction %q, operation %s: %v", doc.ID, doc.Kind, err)
	}
	t.Operation = op.Elem().Interface().(table.Operation)
	return t, nil
}
