// Package gormdb connects the framework to databases: [Open] returns a [DBProvider], the tx.Provider of the
// application, and [Session] gives gorm to code that needs it, on the current transaction.
//
// PostgreSQL is reached through pgx, MySQL and MariaDB through go-sql-driver/mysql, SQLite through
// modernc.org/sqlite (pure Go).
//
// # SQLite
//
// A database is one file in WAL mode with one write connection per process and a pool of readers (rules R5,
// R6). Statements outside a transaction are routed by their first word: Query of SELECT, VALUES, EXPLAIN,
// PRAGMA, and of WITH without INSERT, UPDATE, DELETE or REPLACE in it, goes to a reader; every other Query
// (INSERT ... RETURNING) and every Exec goes to the writer. Readers have query_only set, so that a
// misrouted write fails instead of corrupting the rule. A write is refused with tx.ErrSingleWriter if its
// context carries a writing transaction of the same database: it would wait for itself (rule T3).
//
// synchronous is FULL: in WAL mode NORMAL may lose the last commits at a power cut, and a commit that is
// recorded must have happened.
//
// # PostgreSQL
//
// Sessions set idle_in_transaction_session_timeout and TCP keepalives (rule L7) as start-up parameters, or
// through a pooler by a statement (rule R9, pooler.go). A statement is cancelled at the server and the
// connection survives, so that its transaction can still roll back to a savepoint.
//
// Statements are prepared and cached per connection (pgx's cache_statement). After a change of the schema
// such a statement may fail with SQLSTATE 0A000, once, and loudly; cache_describe would avoid that by
// planning every execution again, and could decode results by an outdated description. ForceReconnect gives
// new work fresh connections and thereby fresh statements (rule T7). The URL's parameter
// default_query_exec_mode overrides this.
//
// # MySQL and MariaDB
//
// A statement that would commit (DDL) is refused in a transaction, a savepoint around a CALL shows whether the
// procedure has ended it, and after a deadlock or a lock wait nothing but a rollback is possible (rules MY2 to MY4). A
// cancelled statement loses its connection.
//
// # Pools of the application
//
// [Lend] makes a database of a pool that the application has opened (rule R8, borrow.go).
//
// # Transactions and sessions
//
// BEGIN names the transaction in the same message, and a script that ends it is found (rule T8a:
// postgrestx.go, sqlitetx.go). The session of a step that may have changed it is restored (rule T8b:
// trace.go). A tx.Conn.Raw without tx.Running may have done anything.
//
// It imports tx, gorm, the drivers, and internal/gormtx, internal/dberr and internal/secret.
package gormdb
