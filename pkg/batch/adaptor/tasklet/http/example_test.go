package httptask_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	httptask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/http"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// The http tasklet sends a notification to a webhook; in a job file: http: {url: ..., json: {text: ...}}.
func ExampleComponents() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		testexample.Check(err)
		_, err = fmt.Fprintf(w, "%s %s", r.Method, text)
		testexample.Check(err)
	}))
	defer server.Close()
	tasklet := testexample.Must(testcomponent.Make[core.Tasklet](httptask.Components(), registry.KindTasklet, testcomponent.Settings{"url": server.URL, "json": registry.JSON(`{"text":"done"}`)}, registry.BuildContext{}))
	c := &core.StepContribution{}
	fmt.Println(tasklet.Execute(context.Background(), c), c.Out["status"], c.Out["body"])
	// Output: <nil> 200 POST {"text":"done"}
}
