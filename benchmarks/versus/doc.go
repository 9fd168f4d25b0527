// Package versus measures two ways of compacting the same table against each
// other: rehome, and a stock engine's own optimize.
//
// Both get a copy of the table ([Copy]) and a process of their own, whose resource
// use the kernel reports when it ends ([Measure]): peak memory and bytes written
// are the whole process's. Wall and processor time of a stock engine are taken
// inside its process around the one call ([Stock]), so that starting an
// interpreter and opening the table do not count against it; rehome's are the
// whole process's. Runs of the two alternate, so that a machine that slows down
// slows both.
package versus
