package batch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Tasks are submitted together, with a budget. The type of the first one comes from its hint.
func ExampleApp_submitTasks() {
	app, done := taskExample()
	defer done()
	accepted, err := app.Tasks.Submit(context.Background(), task.Submission{
		Type: "shell",
		Tasks: []task.Spec{
			{
				Title: "Download file",
				Hints: task.Hints{
					Intent:         "Fetch data from API",
					Goal:           json.RawMessage(`{"url": "https://example.com/data.json"}`),
					SeedActionHint: json.RawMessage(`{"type": "http_request"}`),
				},
				Payload: json.RawMessage(`{"url": "https://example.com/data.json"}`),
			},
			{Title: "Process downloaded data", Payload: json.RawMessage(`{"script": "echo done"}`)},
		},
		Budget: task.Budget{MaxAttempts: 3, MaxTotalAttempts: 10, Deadline: time.Minute, MaxNoProgress: 50},
	})
	testexample.Check(err)
	fmt.Println("Submitted group:", accepted.Group)
	// Output: Submitted group: 1
}

// page fetches the page at a URL.
type page struct{}

func (page) Execute(ctx context.Context, t task.Task) (task.Outcome, error) {
	var asked struct{ URL string }
	if err := t.Decode(&asked); err != nil {
		return task.Outcome{}, err // FAILURE: it is retried
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.URL, nil)
	if err != nil {
		return task.Outcome{}, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return task.Failure("Network error").WithArtifact(task.Stderr(err.Error())).
			WithRetryHint(json.RawMessage(`{"backoff_ms": 1000}`)), nil
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return task.Outcome{}, err
	}
	return task.Success().WithReason("Request succeeded").WithArtifact(task.Stdout(string(body))), nil
}

// A handler executes the tasks of its type, on a worker.
func ExampleHandler() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hello"))
	}))
	defer server.Close()
	app, done := taskExample(batch.Handler("page", func() page { return page{} }))
	defer done()
	_, tasks := workExample(app, task.Submission{Type: "page", Tasks: []task.Spec{
		{Payload: json.RawMessage(`{"url": "` + server.URL + `"}`)},
	}})
	attempts, err := app.Tasks.Attempts(context.Background(), tasks[0])
	testexample.Check(err)
	fmt.Println(attempts[0].State, attempts[0].Outcome.Reason, attempts[0].Outcome.Artifacts[0].Text)
	// Output: SUCCESS Request succeeded hello
}

// A decider decides about the next step after an attempt that did not succeed. Submissions name it.
func ExampleTaskDecider() {
	twice := func(c task.Case) task.Decision {
		if c.Spent.Attempts == 2 {
			return task.MarkDead("twice is enough: " + c.Outcome.Reason)
		}
		return task.Retry(time.Millisecond, "once more")
	}
	app, done := taskExample(batch.TaskDecider("twice", func() task.DeciderFunc { return twice }))
	defer done()
	_, tasks := workExample(app, task.Submission{Type: "shell", Decider: "twice", Tasks: []task.Spec{
		{Payload: json.RawMessage(`{"script": "exit 3"}`)},
	}})
	decisions, err := app.Tasks.Decisions(context.Background(), tasks[0])
	testexample.Check(err)
	for _, d := range decisions {
		fmt.Println(d.Trigger, d.Policy, d.Decision.Dead, d.Decision.Reason)
	}
	// Output:
	// FAILURE twice false once more
	// FAILURE twice true twice is enough: exit status 3
}

// thumbnail is the payload of a task.
type thumbnail struct {
	File string `json:"file"`
	Size int    `json:"size"`
}

// A step of a job in Go has one task executed for each item. Without workers the process that runs the
// job executes them.
func ExampleTasks() {
	var mu sync.Mutex
	var made []string
	shrink := task.HandlerFunc(func(_ context.Context, t task.Task) (task.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		made = append(made, string(t.Spec.Payload))
		return task.Success(), nil
	})
	album := batch.NewJob("album").
		Parameter(batch.Parameter{Name: "of", Type: "string", Default: "2026"}).
		Step("thumbnails", batch.Tasks{
			Handler: "shrink",
			Items:   []any{thumbnail{"${params.of}/sea.jpg", 64}, thumbnail{"${params.of}/hut.jpg", 128}},
			Budget:  batch.Budget{MaxAttempts: 3},
		}).
		Step("done", batch.Use("sql", "create table album as select ${steps.thumbnails.out.succeeded} as photos"))
	app, done := taskExample(batch.Jobs(album), batch.Handler("shrink", func() task.HandlerFunc { return shrink }))
	defer done()
	ran := testexample.Must(app.Run(context.Background(), batch.RunRequest{Name: "album"}))
	fmt.Println(ran.Status)
	slices.Sort(made)
	fmt.Println(strings.Join(made, "\n"))
	// Output:
	// COMPLETED
	// {"file":"2026/hut.jpg","size":128}
	// {"file":"2026/sea.jpg","size":64}
}

// The status of a group counts its tasks. An unknown group is an error.
func ExampleApp_statusOfTasks() {
	app, done := taskExample()
	defer done()
	group, _ := workExample(app, task.Submission{Type: "shell", Budget: task.Budget{MaxAttempts: 1}, Tasks: []task.Spec{
		{Payload: json.RawMessage(`{"script": "exit 0"}`)}, {Payload: json.RawMessage(`{"script": "exit 1"}`)},
	}})
	ctx := context.Background()
	status, err := app.Tasks.Status(ctx, group)
	testexample.Check(err)
	fmt.Printf("Group %d status: %s\n", status.ID, status.State)
	fmt.Printf("Tasks: %d total, %d succeeded, %d failed\n", status.Total, status.Succeeded, status.Failed)
	_, err = app.Tasks.Status(ctx, 99)
	fmt.Println(errors.Is(err, core.ErrNotFound))
	// Output:
	// Group 1 status: failed
	// Tasks: 2 total, 1 succeeded, 1 failed
	// true
}

// taskExample is an application on an SQLite database in a folder of its own.
func taskExample(opts ...fx.Option) (app *batch.App, done func()) {
	dir, remove := testexample.Dir()
	ctx := context.Background()
	s := testexample.Must(settings.Load(settings.Source{Dir: dir})) // an application calls batch.LoadSettings
	s.Tasks.Shell = true                                            // off by default: such a task is any command
	app = testexample.Must(batch.New(ctx, s, opts...))
	testexample.Check(app.Prepare(ctx))
	return app, func() {
		testexample.Check(app.Close(ctx))
		remove()
	}
}

// workExample submits a group and works until it is over.
func workExample(app *batch.App, s task.Submission) (task.GroupID, []task.ID) {
	ctx := context.Background()
	accepted := testexample.Must(app.Tasks.Submit(ctx, s))
	stop, worked := make(chan struct{}), make(chan error, 1)
	go func() { worked <- app.Work(ctx, stop, batch.WorkOptions{Slots: 2, Poll: 20 * time.Millisecond}) }()
	testexample.Must(app.Tasks.Wait(ctx, accepted.Group))
	close(stop)
	testexample.Check(<-worked)
	return accepted.Group, accepted.Tasks
}
