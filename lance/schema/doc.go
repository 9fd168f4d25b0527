// Package schema is the schema of a Lance table: fields with ids, their logical
// types, and which of them own a column in a data file.
//
// A [Schema] is a tree of [Field]s. Manifests and data files store it as a flat
// list of protobuf messages in pre-order; a Field keeps its message, so fields
// and metadata that this package does not know survive being written again.
//
// # Logical types
//
// Lance spells a type as a string: "int64", "timestamp:us:UTC",
// "fixed_size_list:float:128", "list.struct". [ParseLogicalType] and
// [LogicalType] convert them from and to Arrow types. A spelling that is not
// known becomes [Opaque], so that a table with such a column can still be opened
// and its other columns looked at.
//
// # Leaves
//
// From format 2.1 on, only leaves own a column; lists and structs live on in the
// leaves' levels (package level). [Schema.Leaves] lists the leaves in column
// order of a freshly written file, each with the shape of its values and its
// layers, or with the reason why it cannot be read or written. A column of such
// an unsupported leaf is refused by whoever needs its data, never skipped.
//
// # Worked example
//
//	tags  list<utf8>, nullable       field 0, logical type "list"
//	└ item utf8, nullable            field 1, logical type "string"
//	v     fixed_size_list<f32>[4]    field 2, logical type "fixed_size_list:float:4"
//
// has two leaves: "tags.item" (field 1, Variable with 32-bit offsets, layers
// NullableItem, NullAndEmptyList) and "v" (field 2, FixedList of 4 times 32 bits,
// layer NullableItem). A fixed-size list of a primitive type is one field and one
// leaf: its items are part of the value. So is a packed struct, whose fields lie
// side by side in the value, and a dictionary, whose rows are the values that it
// stands for.
package schema
