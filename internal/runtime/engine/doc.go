// Package engine is the port through which workers are notified of work: an [Engine] carries a
// [Delivery] from the transaction that created the work to a handler in some process.
//
// An engine delivers at least once, and the tables decide. A delivery carries IDs only. Its handler
// reads the tables to see whether the work is still there, in that epoch, and takes it by a guarded
// update; a second or late delivery finds nothing to take. The leader finds a lost delivery with
// [Engine.Missing] and delivers again with a higher epoch. So engines can be exchanged, and none
// has state of ours.
//
// Its implementations are in adaptor/engine; all pass the tests of enginetest.
//
// It imports tx.
package engine
