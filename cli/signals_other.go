//go:build !unix

package cli

import "os"

// pipeBroken cannot be told here.
func pipeBroken(*os.File) bool { return false }

// writeNonBlocking is nothing here: there are no FIFOs.
const writeNonBlocking = 0
