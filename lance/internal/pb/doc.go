// Package pb holds the protobuf messages of the Lance format, one sub-package a
// proto package. The .proto files state the field numbers that Lance writes; the
// Go code is generated from them and committed. Messages keep fields that they do
// not know, so decoding and encoding one again loses nothing.
package pb

//go:generate go run ../genpb
