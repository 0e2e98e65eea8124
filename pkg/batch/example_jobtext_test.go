package batch_test

import (
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The definition of a job in Go is a job file, which the history keeps and rule F4 compares.
func ExampleJob_Text() {
	text, err := batch.NewJob("clean").
		Parameter(batch.Parameter{Name: "days", Type: core.TypeInt, Default: 30}).
		Step("clean", batch.Use("sql", "delete from log where age > ${params.days}"), batch.With{
			On: map[string]batch.Target{"FAILED": batch.Stop("", "look at the log")},
		}).
		Text()
	fmt.Println(text, err)
	// Output:
	// job: clean
	// parameters:
	//   days:
	//     type: int
	//     default: 30
	// flow:
	//   - step: clean
	//     tasklet:
	//       sql: "delete from log where age > ${params.days}"
	//     next:
	//       FAILED:
	//         stop:
	//           message: look at the log
	//  <nil>
}
