// Package rowjson writes rows of Arrow record batches as JSON objects, and reads them.
//
// There are two encodings. Neither loses a bit of a value; they differ in who
// reads them.
//
// [Plain] is for people and for tools such as jq. Integers of every width are
// JSON numbers, decimals are strings ("-12.3400", always with the type's scale),
// dates, times, timestamps and durations are ISO 8601 with as many fraction
// digits as the unit has, binary is base64.
//
// [Raw] is for comparing tables value by value: it is the encoding of the
// expected.json files beside the golden tables. 64-bit integers and 64-bit
// temporal values are strings of the stored number (a JSON reader that keeps
// numbers as doubles would round them), 32-bit temporal values are numbers,
// binary is {"b64": "..."} and a decimal {"dec": "..."}, the hexadecimal
// little-endian two's complement of the unscaled value.
//
// In both, floats are the shortest decimal that reads back as the same double
// (a float32 or float16 is widened first, so that 0.1 stored in 32 bits shows as
// 0.10000000149011612, which is its value), NaN and the infinities are the
// strings "NaN", "Infinity" and "-Infinity", negative zero keeps its sign, lists
// are arrays, structs are objects, a map is an array of {"key","value"} objects,
// a dictionary value is the value it stands for, and null is null.
//
// As an example, the row (int64 7, timestamp[us, UTC] 1700000000000000, float32
// 0.5, binary 01 00 ff) is
//
//	{"id":7,"at":"2023-11-14T22:13:20.000000Z","f":0.5,"b":"AQD/"}
//
// in Plain and
//
//	{"id":"7","at":"1700000000000000","f":0.5,"b":{"b64":"AQD/"}}
//
// in Raw.
//
// A [Decoder] reads what was written in Plain, exactly: nothing is rounded, cut off
// or put in the place of what is missing, and an error names the line and the column.
// It accepts some other spellings of the same value that other programs write:
// members in any order, integers and decimals as strings and as numbers, fraction
// digits left out.
package rowjson
