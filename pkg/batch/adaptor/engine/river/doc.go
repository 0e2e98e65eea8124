// Package river is the engine for many machines on PostgreSQL: deliveries are jobs of River
// (riverqueue.com), in a schema of their own in the database of the work. They are inserted in the
// transaction of the work, and a NOTIFY wakes an idle worker.
//
// River's timeouts, retries, rescue and periodic jobs are not used: a delivery is worked on once, and the
// leader finds lost ones (engine.Missing). An application's own jobs of River must be in another schema,
// since River's leader there deletes and discards unknown jobs.
//
// It imports tx, core, runtime/engine, River and pgx; module.go imports fx and settings.
package river
