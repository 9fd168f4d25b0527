//go:build !unix

package store

import "io/fs"

// inode is not had cheaply: times must do.
func inode(fs.FileInfo) uint64 { return 0 }

// syncDir does nothing where directories cannot be synced.
func syncDir(string) error { return nil }

func linked(string) bool { return false }

func linkUnsupported(error) bool { return true }

const openNonBlocking = 0
