package define_test

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/jobfile/define"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The definition of a job in Go is a job file, which the history keeps and rule F4 compares.
func ExampleJob_Text() {
	text, err := define.NewJob("clean").
		Parameter(define.Parameter{Name: "days", Type: core.TypeInt, Default: 30}).
		Step("clean", define.Use("sql", "delete from log where age > ${params.days}"), define.With{
			On: map[string]define.Target{"FAILED": define.Stop("", "look at the log")},
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
