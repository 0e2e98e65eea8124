// Package guard moves rows of a table from state to state by one guarded UPDATE (rules D3, R3, SM1 to
// SM6): a caller that finds no row has lost, or repeats a move, and the answer says which. The
// framework's tasks move by it, and an application may let its own rows move by it, such as orders with
// events that arrive twice and out of order.
//
// The states are texts or integers. A table has these columns, and any others, unless WithColumns
// changes them: all but a key and the state are optional.
//
//	id           bigint PRIMARY KEY
//	state        text NOT NULL
//	state_before text NOT NULL DEFAULT ''
//	version      bigint NOT NULL DEFAULT 0   -- raised by every move
//	epoch        bigint NOT NULL DEFAULT 1   -- raised by moves of core.IntentTake
//	last_move    text NOT NULL DEFAULT ''
//	last_epoch   bigint NOT NULL DEFAULT 0
//
// Request.Set writes the others, such as updated_at, in the same UPDATE.
//
// It imports core and tx.
package guard
