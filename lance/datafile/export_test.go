package datafile

import "github.com/rehome-db/rehome/lance/datafile/encoding"

// What tests outside the package use of those inside.
var (
	RequireTaken = requireTaken
	DrawRanges   = drawRanges
)

// SetLimits makes blocks smaller than they are in earnest.
func (f *File) SetLimits(l encoding.Limits) { f.limits = l }
