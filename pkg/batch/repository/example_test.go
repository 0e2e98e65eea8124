package repository_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
)

// New does not touch the database; create the tables, or check for them, before the repository is
// used.
func ExampleNew() {
	ctx := context.Background()
	_, db, done := testexample.SQLite()
	defer done()
	r := repository.New(db, repository.Options{Prefix: "etl_"})

	fmt.Println(errors.Is(r.CheckSchema(ctx), core.ErrSchemaMissing))
	fmt.Println(r.Migrate(ctx), r.CheckSchema(ctx))
	executions, err := r.Executions(ctx, ports.ExecutionFilter{Limit: 10})
	fmt.Println(len(executions), err)
	// Output:
	// true
	// <nil> <nil>
	// 0 <nil>
}
