// Package river is the engine for many machines on PostgreSQL: deliveries are jobs of River (riverqueue.com),
// in tables in a schema of their own in the database of the work. They are inserted in the transaction of the
// work, and a NOTIFY wakes an idle worker anywhere.
//
// River only carries deliveries. Its timeouts, retries, rescue and periodic jobs are not used: a delivery is
// worked on once, and the leader finds lost ones (engine.Missing). The schema is for deliveries alone: an
// application with jobs of River of its own keeps them in another one, since River's leader there deletes and
// discards unknown jobs.
//
// It imports tx, core, runtime/engine, River and pgx; module.go imports fx and settings.
package river
