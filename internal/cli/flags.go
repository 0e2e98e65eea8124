package cli

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

type settingFlag struct{ name, key, usage string }

func settingFlags() []settingFlag {
	return []settingFlag{
		{"database-url", "databases.default.url", "`URL` of the default database: sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME"},
		{"auto-migrate", "auto_migrate", "create or update the history's tables at start: `WHEN` is true, false or sqlite"},
		{"lease", "lease", "`DURATION` after its last heartbeat for which a process keeps an execution"},
		{"heartbeat", "heartbeat", "`DURATION` between two heartbeats"},
		{"log-level", "log.level", "`LEVEL` of the log: debug, info, warn or error"},
		{"log-format", "log.format", "`FORM` of the log: text or json"},
	}
}

func (env *environment) addGlobalFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&env.config, "config", "", "settings `FILE` (default: surfin.yaml in the working directory, if there is one)")
	f.StringVar(&env.as, "as", "", "act as this `PERSON` in the audit (default: the user and the host)")
	f.BoolVar(&env.debug, "debug", false, "log at level debug, and show the stack of a panic")
	for _, s := range settingFlags() {
		f.String(s.name, "", s.usage)
	}
}

func (env *environment) addFormatFlag(cmd *cobra.Command) {
	env.addFormats(cmd, "table or json", formatTable, formatJSON)
}

func (env *environment) addListFormatFlag(cmd *cobra.Command) {
	env.addFormats(cmd, "table, json or csv", formatTable, formatJSON, formatCSV)
}

func (env *environment) addFormats(cmd *cobra.Command, words string, allowed ...string) {
	env.format = formatTable
	cmd.Flags().Var(&formatFlag{&env.format, allowed}, "format", "form of the result: "+words)
	completeFlag(cmd, "format", allowed...)
}

func addReasonFlag(env *environment, cmd *cobra.Command) {
	cmd.Flags().StringVar(&env.reason, "reason", "", "reason for the audit: a `TEXT`")
}

func completeFlag(cmd *cobra.Command, name string, values ...string) {
	complete := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // the flag is not defined: a mistake in this package
	}
}

// Later errors are no longer usage errors.
func (env *environment) start(cmd *cobra.Command) error {
	env.started = true
	if name := cmd.Name(); name != "worker" && name != "serve" { // these return an answer, or retry, by themselves
		cmd.SetContext(model.WithPatience(cmd.Context(), lease.Waiting))
	}
	if err := env.actAs(cmd); err != nil {
		return err
	}
	if len(env.reason) > maxReason {
		return usagef("--reason: a text of at most %d bytes is expected", maxReason)
	}
	cmd.SetContext(operator.WithReason(cmd.Context(), env.reason))
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, s := range settingFlags() {
			if s.name == f.Name {
				env.flags = append(env.flags, settings.Flag{Name: "--" + f.Name, Key: s.key, Value: f.Value.String()})
			}
		}
	})
	return nil
}

// actAs includes the system's user, because --as is not verified (rule OP4).
func (env *environment) actAs(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("as") {
		return nil
	}
	if env.as == "" || len(env.as) > maxPerson || !utf8.ValidString(env.as) || strings.ContainsFunc(env.as, unicode.IsControl) {
		return usagef("--as: a name of at most %d bytes without control characters is expected", maxPerson)
	}
	cmd.SetContext(ports.WithActor(cmd.Context(), env.as+" ("+operator.CurrentActor()+")"))
	return nil
}

const (
	maxPerson = 200
	maxReason = 1000
)

func (env *environment) command(args ...string) string { return env.words().Line(args...) }

func (env *environment) words() wording.Commands {
	c := wording.Commands{Program: env.app.Name, Dir: env.dir, Repeat: env.repeat}
	if env.config != "" {
		c.Flags = append(c.Flags, "--config", env.config)
	}
	for _, f := range env.flags {
		if f.Name == "--database-url" {
			c.Flags = append(c.Flags, f.Name, secret.Text(f.Value))
		}
	}
	return c
}
