// Package engine is the port through which workers hear that there is work: an [Engine]
// carries a [Delivery] from the transaction that made the work to a handler in some
// process.
//
// An engine delivers at least once, and the tables decide. A delivery carries ids only.
// Who handles it asks the tables whether the work is still there, in that epoch, and takes
// it by a guarded update; a second delivery, or a late one, finds nothing to take. A
// delivery that is lost is found by the leader, who asks [Engine.Missing] and delivers
// again with a higher epoch. So an engine can be exchanged, and none has state of ours.
//
// Its implementations are in adaptor/engine; all pass the tests of enginetest.
//
// It imports tx.
package engine
