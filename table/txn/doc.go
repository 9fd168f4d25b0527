// Package txn is a codec for engines that have no form of their own in which to keep
// transactions: [Marshal] makes JSON of a [table.Transaction] and [Unmarshal] reads it.
//
// An engine stores the bytes beside the version that the transaction made, and returns
// what they hold from Loader.TransactionsSince. The document says which form it has
// ("format"). This release writes form 1. A form that it does not know is
// [table.ErrUnsupported], and bytes that are no document [table.ErrCorrupt]; an
// operation that it does not know is [table.Unknown], with which everything conflicts
// that does not know better, so that an older reader stays right.
//
// Not kept is what belongs to an engine and not to the transaction: the handles of
// indexes.
package txn
