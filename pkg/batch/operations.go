package batch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// Start launches a job file, as Run does, and returns when its execution exists:
// wait for it, or stop it, with what is returned. It goes on when ctx ends.
func (a *App) Start(ctx context.Context, file string, params map[string]string) (*job.Running, error) {
	if err := a.Prepare(ctx); err != nil {
		return nil, err
	}
	j, values, err := a.load(file, params)
	if err != nil {
		return nil, err
	}
	return a.keep(a.launcher.Start(ctx, j, values))
}

// Restart goes on with an execution that failed or stopped, as Start does: with its
// parameters, and the job file from where it was. It refuses with
// core.ErrNotMostRecent, *core.InstanceCompleteError and the like: see
// job.Operator.Restart.
func (a *App) Restart(ctx context.Context, id core.JobExecutionID) (*job.Running, error) {
	exec, err := a.repository.Execution(ctx, id)
	if err != nil {
		return nil, err
	}
	o, err := a.newOperator(func(ctx context.Context, name string) (*core.Job, error) {
		if exec.Definition.Path == "" {
			return a.job(ctx, name)
		}
		return a.compile(exec.Definition.Path)
	})
	if err != nil {
		return nil, err
	}
	return a.keep(o.Restart(ctx, id))
}

// Stop asks an execution to stop, whatever process runs it, and returns at once: the
// chunk in hand is committed, and the execution ends STOPPED.
func (a *App) Stop(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	return a.operator.Stop(ctx, id)
}

// Abandon gives up an execution that stopped, failed or has an unknown outcome: its
// instance will not be restarted.
func (a *App) Abandon(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	return a.operator.Abandon(ctx, id)
}

// Recover ends executions whose process died, so that they can be restarted, and
// returns them. What is alive is not touched.
func (a *App) Recover(ctx context.Context) ([]core.JobExecution, error) {
	return a.operator.Recover(ctx)
}

// Purge deletes old executions; what runs is never deleted.
func (a *App) Purge(ctx context.Context, filter core.PurgeFilter) (core.Purged, error) {
	return a.operator.Purge(ctx, filter)
}

// Operator is what operates on jobs by name: those that this application has run or
// started, and those of the history, whose files are read from where they were.
func (a *App) Operator() *job.Operator { return a.operator }

func (a *App) newOperator(jobs func(ctx context.Context, name string) (*core.Job, error)) (*job.Operator, error) {
	return job.NewOperator(job.OperatorConfig{
		Repository: a.repository, Launcher: a.launcher, Jobs: jobs, Actor: actor(), Dead: job.DeadOwner, Notify: a.running.notify,
		Sweep: a.sweep,
	})
}

// sweep deletes the checkpoints of deleted instances in the databases that have any
// besides the repository's (rule C18).
func (a *App) sweep(ctx context.Context) error {
	var errs []error
	for _, name := range a.provider.Names() {
		if name == a.settings.Repository.Database {
			continue
		}
		if _, err := a.checkpoints.Sweep(ctx, name); !errors.Is(err, core.ErrSchemaMissing) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// actor is who acts, for the audit: the user and the host.
func actor() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// load reads a job file, and the parameters of a launch as it declares them.
func (a *App) load(file string, params map[string]string) (*core.Job, core.Parameters, error) {
	f, err := jobfile.Load(file, a.registry)
	if err != nil {
		return nil, core.Parameters{}, err
	}
	values, err := job.ValidateParameters(f.Parameters(), params)
	if err != nil {
		return nil, core.Parameters{}, err
	}
	j, err := a.compiled(f, file)
	return j, values, err
}

func (a *App) compile(file string) (*core.Job, error) {
	f, err := jobfile.Load(file, a.registry)
	if err != nil {
		return nil, err
	}
	return a.compiled(f, file)
}

func (a *App) compiled(f *jobfile.File, file string) (*core.Job, error) {
	j, err := f.Compile(jobfile.Deps{Provider: a.provider, Registry: a.registry, FileMode: a.settings.Files.Mode})
	if err != nil {
		return nil, err
	}
	if j.Definition.Path, err = filepath.Abs(file); err != nil {
		return nil, fmt.Errorf("job file: %w", err)
	}
	a.files.Store(j.Name, j.Definition.Path)
	return j, nil
}

// job finds a job by its name.
func (a *App) job(ctx context.Context, name string) (*core.Job, error) {
	if path, ok := a.files.Load(name); ok {
		return a.compile(path.(string)) //nolint:forcetypeassert // only compiled stores
	}
	page, err := a.repository.Executions(ctx, core.ExecutionFilter{JobName: name, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page) == 0 || page[0].Definition.Path == "" {
		return nil, fmt.Errorf("%s: %w: no execution of it tells where its file is", name, core.ErrNoSuchJob)
	}
	return a.compile(page[0].Definition.Path)
}

// keep remembers what runs in this process, until it is over.
func (a *App) keep(r *job.Running, err error) (*job.Running, error) {
	if err != nil {
		return nil, err
	}
	a.running.add(r)
	return r, nil
}

// runnings are the executions that Start and Restart began, and which are not over.
type runnings struct {
	mu   sync.Mutex
	byID map[core.JobExecutionID]*job.Running
}

func (rs *runnings) add(r *job.Running) {
	id := r.Execution().ID
	rs.mu.Lock()
	if rs.byID == nil {
		rs.byID = map[core.JobExecutionID]*job.Running{}
	}
	rs.byID[id] = r
	rs.mu.Unlock()
	go func() {
		<-r.Done()
		rs.mu.Lock()
		delete(rs.byID, id)
		rs.mu.Unlock()
	}()
}

// notify stops an execution of this process without waiting until it looks into the
// database.
func (rs *runnings) notify(_ context.Context, e core.JobExecution) error {
	rs.mu.Lock()
	r, here := rs.byID[e.ID]
	rs.mu.Unlock()
	if here {
		r.Stop()
	}
	return nil
}

// stop stops all, and waits until they are over.
func (rs *runnings) stop(ctx context.Context) error {
	rs.mu.Lock()
	var all []*job.Running
	for _, r := range rs.byID {
		all = append(all, r)
	}
	rs.mu.Unlock()
	for _, r := range all {
		r.Stop()
	}
	var errs []error
	for _, r := range all {
		select {
		case <-r.Done():
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("execution %d still runs: %w", r.Execution().ID, context.Cause(ctx)))
		}
	}
	return errors.Join(errs...)
}
