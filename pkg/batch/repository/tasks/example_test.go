package tasks_test

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
)

// A task fails, is tried again and succeeds: each line is a guarded transition in the database.
func Example() {
	_, db, done := testexample.SQLite()
	defer done()
	ctx := context.Background()
	testexample.Check(repository.New(db, repository.Options{}).Migrate(ctx))
	repo := testexample.Must(tasks.New(db, repository.DefaultPrefix, tasks.Options{}))
	submitted, waiting, err := repo.Submit(ctx, task.Submission{Type: "example", Tasks: []task.Spec{{Payload: []byte(`{"data": "value"}`)}}})
	testexample.Check(err)
	show := func() *task.Task {
		t := testexample.Must(repo.Task(ctx, submitted.Tasks[0]))
		fmt.Printf("%s, %d attempts, last error %q\n", t.State, t.Attempts, t.LastError)
		return t
	}
	show()

	// A worker takes it and begins.
	me := taskports.Claimant{Worker: "worker-1", Capacity: 1, Types: []string{"example"}, Lease: time.Minute}
	claimed, _, err := repo.Claim(ctx, waiting[0], me)
	testexample.Check(err)
	show()

	// The handler fails, and the decider has it tried again.
	again := func(task.Case) (string, task.Decision) { return "example", task.Retry(0, "again") }
	testexample.Must(repo.End(ctx, claimed.Ref, task.Failure("Connection timeout"), again))
	show()

	// After the delay it is delivered again, and succeeds.
	waiting = testexample.Must(repo.MakeDue(ctx, 10))
	show()
	claimed, _, err = repo.Claim(ctx, waiting[0], me)
	testexample.Check(err)
	testexample.Must(repo.End(ctx, claimed.Ref, task.Success(), again))
	fmt.Println("over:", show().State.IsOver())
	// Output:
	// PENDING, 0 attempts, last error ""
	// RUNNING, 1 attempts, last error ""
	// RETRY_SCHEDULED, 1 attempts, last error "Connection timeout"
	// PENDING, 1 attempts, last error "Connection timeout"
	// SUCCEEDED, 2 attempts, last error ""
	// over: true
}
