package manifest

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/table"
)

const (
	// bytesAMessage is less than any message takes that says something: a fragment has
	// an id, rows and a file with a name. A decoded message takes some 200 bytes, so
	// this bounds what decoding takes by a multiple of what was read.
	bytesAMessage = 4
	// fewMessages are decoded whatever they say.
	fewMessages = 1 << 16
	// nesting is how deep messages are looked into: a field of a file of a fragment.
	nesting = 2
)

// checkDensity refuses a body that is mostly empty messages, before it is decoded: each
// takes two bytes in the file and about a hundred in memory. It reads the bytes once and
// takes no memory. It leaves bytes that are no message at all to the decoder.
func checkDensity(body []byte, what string) error {
	n := countMessages(body, nesting)
	if n > fewMessages && n*bytesAMessage > len(body) {
		return table.Corruptf("manifest: the %s has %d parts in %d bytes: most of them are empty, and none may be", what, n, len(body))
	}
	return nil
}

// countMessages counts the length-delimited fields that may be messages: of a body and
// of those in it, as far down as is said.
func countMessages(body []byte, depth int) int {
	count := 0
	for len(body) > 0 {
		num, typ, n := protowire.ConsumeTag(body)
		if n < 0 {
			return count
		}
		body = body[n:]
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, typ, body); n < 0 {
				return count
			}
			body = body[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(body)
		if n < 0 {
			return count
		}
		body = body[n:]
		count++
		if depth > 1 {
			count += countMessages(value, depth-1)
		}
	}
	return count
}
