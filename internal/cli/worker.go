package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

const minPoll = 10 * time.Millisecond

func (c serverCommands) workerCommand() *cobra.Command {
	o := runtime.Options{Slots: 1, Poll: runtime.DefaultPoll, Drain: runtime.DefaultDrain}
	var without, labels []string
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Execute tasks, and parts of partitioned steps that other processes run",
		Long: `Executes tasks of the types that have a handler in this program ("tasks submit"), and
runs the work that job files give to workers with "remote: true": partitions of a step,
branches of a split, and child jobs; until it is stopped. Tasks and parts have leases:
other workers take over those of a dead worker; a part resumes after its last committed
chunk, a task is attempted again. Steps are built from the job file that is stored with
the execution: the worker needs no job file, but the job's databases, components and data.

After SIGINT or SIGTERM the worker finishes the current chunks and releases its parts;
running tasks may continue for the time of --drain, then they are ended, and other
workers attempt them again. A second signal cancels.`,
		Example: "  " + c.env.app.Name + " worker --slots 4 --types shell,http_request",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.Slots < 1:
				return usagef("--slots %d: at least 1", o.Slots)
			case o.Poll < minPoll:
				return usagef("--poll %v: at least %v", o.Poll, minPoll)
			case o.Drain < 0:
				return usagef("--drain %v: not negative", o.Drain)
			case o.Drain == 0:
				o.Drain = -1
			}
			var err error
			if o.Labels, err = core.ParseLabels(labels); err != nil {
				return usagef("--label: %w", err)
			}
			for _, what := range without {
				switch what {
				case "tasks":
					o.Types = []string{}
				case "parts":
					o.WithoutParts = true
				default:
					return usagef("--without %s: tasks or parts", what)
				}
			}
			return c.work(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.Var(&settingValue{env: c.env, name: "--health", key: "health.listen"}, "health", "`ADDRESS` HOST:PORT of /livez and /readyz (default: health.listen)")
	f.IntVar(&o.Slots, "slots", o.Slots, "run `N` tasks and parts at once")
	f.DurationVar(&o.Poll, "poll", o.Poll, "`TIME` between two polls for retries that are due")
	f.DurationVar(&o.Drain, "drain", o.Drain, "`TIME` that running tasks have to end when the worker is stopped")
	f.StringSliceVar(&o.Types, "types", nil, "only tasks of these `TYPES`")
	labelFlag(f, &labels)
	f.StringSliceVar(&without, "without", nil, "do not take `WORK` of this kind: tasks or parts")
	return cmd
}

func (c serverCommands) work(ctx context.Context, o runtime.Options) error {
	if err := c.env.configure(); err != nil {
		return err
	}
	ctx, signals := c.env.obeySignals(ctx)
	defer signals.end()
	o.Report = func(e runtime.Event) { c.workerEvent(ctx, e) }
	return c.env.withSession(ctx, c.env.observer(), func(s *Session) error {
		c.env.announceDatabase(ctx)
		c.env.warnUnmasked(ctx)
		return c.withProbes(ctx, s, signals.stop, func() error {
			c.env.log.InfoContext(ctx, "worker with "+humanize.Plural(o.Slots, "slot")+": waiting for work")
			return s.Work(ctx, signals.stop, o)
		})
	})
}

func (c serverCommands) withProbes(ctx context.Context, s *Session, stopping <-chan struct{}, work func() error) (err error) {
	address := c.env.settings.Health.Listen
	if address == "" {
		return work()
	}
	at, end, err := api.ServeHealth(ctx, address, &api.Health{Check: s.Service.CheckDatabase, Stopping: stopping, Log: c.env.log})
	if err != nil {
		return usage(err)
	}
	defer func() { err = errors.Join(err, end()) }()
	c.env.log.InfoContext(ctx, fmt.Sprintf("probes are answered at http://%s/livez and /readyz", at))
	return work()
}

func (c serverCommands) workerEvent(ctx context.Context, e runtime.Event) {
	var args []any
	subject := "look for work"
	if e.Execution != 0 {
		subject = "execution"
		args = append(args, "execution", int64(e.Execution))
	}
	if e.Partition != nil {
		subject = "part"
		args = append(args, "part", e.Partition.Name, "step_execution", int64(e.Partition.ID))
		if e.What == "ended" {
			args = append(args, "status", string(e.Partition.Status), "read", e.Partition.Counters.Read, "written", e.Partition.Counters.Write)
		}
	}
	if e.Task != nil {
		c.taskEvent(ctx, e)
		return
	}
	if e.Err != nil {
		c.env.log.ErrorContext(ctx, subject+" "+e.What, append(args, "error", humanize.OneLine(e.Err.Error()))...)
		return
	}
	if e.Partition != nil && e.What == "ended" && e.Partition.Status == core.StatusFailed {
		c.env.log.ErrorContext(ctx, "part failed", append(args, "error", humanize.OneLine(e.Partition.Error))...)
		return
	}
	c.env.log.InfoContext(ctx, subject+" "+e.What, args...)
}

func (c serverCommands) taskEvent(ctx context.Context, e runtime.Event) {
	args := []any{"task", int64(e.Task.ID), "type", e.Task.Spec.Type}
	if e.Task.Attempts > 0 {
		args = append(args, "attempt", e.Task.Attempts)
	}
	switch {
	case e.Err != nil:
		c.env.log.ErrorContext(ctx, "task "+e.What, append(args, "error", humanize.OneLine(e.Err.Error()))...)
	case e.What == "ended" && e.State != task.Succeeded:
		c.env.log.WarnContext(ctx, "task attempt failed", append(args, "state", string(e.State), "reason", humanize.OneLine(e.Reason))...)
	case e.What == "ended":
		c.env.log.InfoContext(ctx, "task ended", append(args, "state", string(e.State))...)
	default:
		c.env.log.InfoContext(ctx, "task "+e.What, args...)
	}
}
