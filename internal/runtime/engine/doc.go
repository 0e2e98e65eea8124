// Package engine is the port that notifies workers: an [Engine] carries a
// [Delivery] from the transaction that created the work to a handler. An engine
// delivers at least once, and the tables decide. A delivery carries IDs only:
// its handler takes the work by a guarded update in that epoch, so a second or
// late one finds nothing. The leader finds lost ones with [Engine.Missing] and
// delivers again with a higher epoch. It imports tx.
package engine
