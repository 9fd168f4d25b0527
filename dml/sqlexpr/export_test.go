package sqlexpr

import (
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// FunctionNames are the names and aliases of all functions.
func FunctionNames() []string { return slices.Sorted(maps.Keys(functionsByName())) }

// BindConstants binds a statement to a schema although it may compare nothing but
// constants: their meaning is tested by such.
func (s *statement) BindConstants(schema *arrow.Schema) error {
	b, err := s.bindWith(&binder{src: s.src, schema: schema})
	s.bound.Store(b)
	return err
}
