package dml

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// Field metadata by which a Lance table declares its primary key. Nothing enforces
// it, but who inserts rows by that key says so in the transaction, so that two writers
// do not insert the same key.
const (
	primaryKeyField         = "lance-schema:unenforced-primary-key"
	primaryKeyFieldPosition = "lance-schema:unenforced-primary-key:position"
)

// PrimaryKey returns the columns of the table's declared primary key, in the order
// declared; none if it has none, or one with a part that is not a top-level column.
func PrimaryKey(s table.Schema) []string {
	var out []string
	for _, f := range primaryKey(s) {
		out = append(out, f.Name)
	}
	return out
}

// primaryKey follows the stock engine's rule: fields with a position come first, by
// position, then the others by id.
func primaryKey(s table.Schema) []table.Field {
	var parts []table.Field
	for _, f := range s.Fields {
		if slices.ContainsFunc(f.Children, isKeyPart) {
			return nil
		}
		if isKeyPart(f) {
			parts = append(parts, f)
		}
	}
	slices.SortStableFunc(parts, func(a, b table.Field) int {
		ra, _ := keyRank(a)
		rb, _ := keyRank(b)
		return cmp.Compare(ra, rb)
	})
	return parts
}

func isKeyPart(f table.Field) bool {
	_, ok := keyRank(f)
	return ok || slices.ContainsFunc(f.Children, isKeyPart)
}

// keyRank is what the parts of a key are ordered by, false for a field that is none.
func keyRank(f table.Field) (int64, bool) {
	position, err := strconv.ParseUint(f.Metadata[primaryKeyFieldPosition], 10, 32)
	if err == nil && position > 0 {
		return int64(position), true
	}
	if err == nil {
		return 1<<32 + int64(f.ID), true
	}
	switch strings.ToLower(f.Metadata[primaryKeyField]) {
	case "true", "1", "yes":
		return 1<<32 + int64(f.ID), true
	}
	return 0, false
}

// uniqueKeys are the ids of the fields that on names if they are the declared primary
// key, whatever their order.
func uniqueKeys(s table.Schema, on []string) []int32 {
	key := primaryKey(s)
	if len(key) == 0 || len(key) != len(on) {
		return nil
	}
	var ids []int32
	for _, f := range key {
		if !slices.Contains(on, f.Name) {
			return nil
		}
		ids = append(ids, f.ID)
	}
	return ids
}
