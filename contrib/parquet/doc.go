// Package parquet reads and writes parquet files: the columns of the types that items have.
//
// It imports core, internal/filestream, internal/place, parquet-go and, to add itself to an application,
// internal/assembly and fx.
package parquet
