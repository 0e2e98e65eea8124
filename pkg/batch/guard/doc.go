// Package guard moves rows by one guarded UPDATE (rules D3, R3, SM1 to SM6): a caller that finds no row has
// lost, or repeats a move, and the answer says which. For the framework's tasks and an application's own rows,
// such as orders with reordered events.
//
// States are texts or integers. DefaultColumns, optional but key and state:
//
//	id           bigint PRIMARY KEY
//	state        text NOT NULL
//	state_before text NOT NULL DEFAULT ''
//	version      bigint NOT NULL DEFAULT 0   -- raised by every move
//	epoch        bigint NOT NULL DEFAULT 1   -- raised by moves of core.IntentTake
//	last_move    text NOT NULL DEFAULT ''
//	last_epoch   bigint NOT NULL DEFAULT 0
//
// Request.Set writes others in the same UPDATE.
//
// It imports core and tx.
package guard
