//go:build !unix

package main

import "os"

// maxRSSOf is not known here.
func maxRSSOf(*os.ProcessState) int64 { return 0 }
