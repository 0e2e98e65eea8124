// Package guard moves rows by one guarded UPDATE (rules D3, R3, SM1 to SM6): a caller that finds no row has
// lost, or repeats a move, and the answer says which. For the framework's tasks and an application's own rows,
// such as orders with reordered events.
//
// States are texts or integers. DefaultColumns, optional but key and state:
//
// id bigint PRIMARY KEY, state and state_before text, version bigint (raised by every move), epoch bigint
// (raised by core.IntentTake), last_move text, last_epoch bigint; NOT NULL, with defaults ”, 0, and 1 for
// epoch.
//
// Request.Set writes others in the same UPDATE.
//
// It imports core and tx.
package guard
