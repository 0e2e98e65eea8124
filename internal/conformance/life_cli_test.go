package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

const scriptedTasklet = "scripted"

func (r *lifeRun) writeFile() {
	r.t.Helper()
	r.file = filepath.Join(r.t.TempDir(), "job.yaml")
	require.NoError(r.t, os.WriteFile(r.file, []byte(r.fileText()), 0o600))
}

func (r *lifeRun) fileText() string {
	spec := r.spec()
	var b strings.Builder
	fmt.Fprintf(&b, "job: %s\n", r.name)
	if spec.Restartable != nil {
		fmt.Fprintf(&b, "restartable: %t\n", *spec.Restartable)
	}
	if spec.Incrementer != "" {
		fmt.Fprintf(&b, "incrementer: %s\n", spec.Incrementer)
	}
	// A double declaration is written twice.
	declared := r.declared(&lifeJob{OptionalParams: spec.OptionalParams, Incrementer: spec.Incrementer})
	declared = slices.DeleteFunc(declared, func(p core.ParameterSpec) bool {
		return spec.OptionalParams == nil && slices.Contains(spec.RequiredParams, p.Name)
	})
	for _, name := range spec.RequiredParams {
		p := r.given(name)
		p.Required = true
		declared = append(declared, p)
	}
	if len(declared) > 0 {
		b.WriteString("parameters:\n")
	}
	for _, p := range declared {
		fmt.Fprintf(&b, "  %s: {type: %s, required: %t, identifying: %t}\n", p.Name, p.Type, p.Required, p.Identifying)
	}
	b.WriteString("flow:\n")
	for _, s := range *spec.Steps {
		fmt.Fprintf(&b, "- step: %s\n  tasklet: %s\n  allow_start_if_complete: %t\n", s.Name, scriptedTasklet, s.AllowStartIfComplete)
		if s.StartLimit != nil {
			fmt.Fprintf(&b, "  start_limit: %d\n", *s.StartLimit)
		}
	}
	return b.String()
}

func (s *lifeScenario) nameForFile() {
	if s.Job != nil {
		s.Job.Incrementer = inFile(s.Job.Incrementer)
		for i, name := range s.Job.RequiredParams {
			s.Job.RequiredParams[i] = inFile(name)
		}
		if s.Job.OptionalParams != nil {
			for i, name := range *s.Job.OptionalParams {
				(*s.Job.OptionalParams)[i] = inFile(name)
			}
		}
	}
	for i := range s.Actions {
		a := &s.Actions[i]
		a.Params, a.Params2, a.Expect.Params = renamed(a.Params), renamed(a.Params2), renamed(a.Expect.Params)
		for k, params := range a.Expect.ExecutionParams {
			a.Expect.ExecutionParams[k] = renamed(params)
		}
	}
}

func renamed[M ~map[string]V, V any](m M) M {
	if m == nil {
		return nil
	}
	out := M{}
	for name, value := range m {
		out[inFile(name)] = value
	}
	return out
}

func inFile(name string) string { return strings.NewReplacer(".", "_", "-", "_").Replace(name) }

func (r *lifeRun) definition() core.Definition {
	if r.file == "" {
		return core.Definition{Hash: "test", Text: "test"}
	}
	file, err := jobfile.Load(r.file, r.registry())
	require.NoError(r.t, err, "the job file")
	return file.Definition()
}

func (r *lifeRun) registry() *registry.Registry {
	r.t.Helper()
	components, err := registry.New([]registry.Component{
		{Kind: registry.KindTasklet, Name: scriptedTasklet, Summary: "Does what the scenario says.", NoTransaction: true, New: r.scripted},
	}, nil, nil)
	require.NoError(r.t, err)
	return components
}

func (r *lifeRun) app() cli.App {
	return cli.App{Name: "surfin", Version: "0.0.0", Registry: r.registry(), Open: func(context.Context, cli.Settings, core.Observer) (*cli.Session, error) {
		service, err := operator.New(operator.Config{
			Repository: r.engine.Repository.Ports(), Launcher: r.launcher(nil), Provider: r.engine.Provider, Registry: r.registry(), Schema: r.engine.Repository,
		})
		if err != nil {
			return nil, err
		}
		return &cli.Session{
			Service: service, Provider: r.engine.Provider,
			Close: func(context.Context) error { return nil },
		}, nil
	}}
}

func (r *lifeRun) scripted(_ context.Context, _ any, b registry.BuildContext) (any, error) {
	steps := *r.spec().Steps
	at := slices.IndexFunc(steps, func(s lifeStep) bool { return s.Name == b.Step })
	if at < 0 {
		return nil, fmt.Errorf("the scenario has no step %s", b.Step)
	}
	return core.TaskletFunc(func(ctx context.Context, c *core.StepContribution) error { return r.play(ctx, c, &steps[at]) }), nil
}

// cliError is the output of a command line. It matches every error with words
// in the output.
type cliError struct{ text string }

func (e *cliError) Error() string { return e.text }

func (e *cliError) Is(target error) bool { return strings.Contains(e.text, target.Error()) }

func (e *cliError) As(target any) bool {
	switch target := target.(type) {
	case **ports.InstanceCompleteError:
		*target = &ports.InstanceCompleteError{}
		return strings.Contains(e.text, "is already complete")
	case **ports.AlreadyRunningError:
		*target = &ports.AlreadyRunningError{}
		return strings.Contains(e.text, "is already running")
	}
	return false
}

// command runs a command line, and reads the execution that it made, or else id.
func (r *lifeRun) command(id core.JobExecutionID, args ...string) *seen {
	r.t.Helper()
	before := r.newestExecution()
	var out, errs bytes.Buffer
	args = append([]string{"--database-url", r.url}, args...)
	ctx, cancel := context.WithTimeout(r.t.Context(), flowTime)
	defer cancel()
	code := cli.Main(ctx, r.app(), args, strings.NewReader(""), &out, &errs)
	if made := r.newestExecution(); made != before {
		id, r.current = made, made
	}
	s := r.look(id, nil)
	if errs.Len() > 0 && code != cli.ExitCompleted {
		s.failure = errors.Join(s.failure, &cliError{errs.String()})
	}
	s.facts["process_exit"] = code
	r.t.Logf("surfin %s: exit %d\n%s%s", strings.Join(args, " "), code, out.String(), errs.String())
	return s
}

func (r *lifeRun) newestExecution() core.JobExecutionID {
	r.t.Helper()
	list, err := r.engine.Repository.Executions(r.t.Context(), ports.ExecutionFilter{JobName: r.name, Limit: 1})
	require.NoError(r.t, err)
	if len(list) == 0 {
		return 0
	}
	return list[0].ID
}

func onTarget(command string) func(r *lifeRun, a *action) *seen {
	return func(r *lifeRun, a *action) *seen {
		id := r.target(a)
		return r.command(id, command, fmt.Sprint(id))
	}
}

func (r *lifeRun) cliRecoverOp(a *action) *seen { return r.command(r.target(a), "recover") }

func (r *lifeRun) cliNextOp(a *action) *seen {
	return r.command(0, append([]string{"next", r.file}, arguments(a)...)...)
}

func (r *lifeRun) cliStartOp(a *action) *seen {
	return r.command(0, append([]string{"run", r.file}, arguments(a)...)...)
}

func arguments(a *action) []string {
	var list []string
	for _, name := range sortedKeys(a.Params) {
		list = append(list, name+"="+a.Params[name].text)
	}
	return list
}

func (r *lifeRun) validJob() error {
	if r.file == "" {
		r.writeFile()
		defer func() { r.file = "" }()
	}
	var out, errs bytes.Buffer
	if cli.Main(r.t.Context(), r.app(), []string{"validate", r.file}, strings.NewReader(""), &out, &errs) != cli.ExitCompleted {
		return fmt.Errorf("%w: %s", errConfig, errs.String())
	}
	return nil
}
