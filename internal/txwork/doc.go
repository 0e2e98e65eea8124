// Package txwork has what an engine tells the databases about the work that begins transactions: its name, its
// end, and whether an author wrote its statements.
//
// It imports the standard library only.
package txwork
