package cli

import (
	"errors"
	"slices"
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
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

type settingFlag struct{ name, key, usage string }

func settingFlags() []settingFlag {
	return []settingFlag{
		{"database-url", "databases.default.url", "`URL` of the default database: sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME"},
		{"auto-migrate", "auto_migrate", "make or update the history's tables on start: `WHEN` is true, false or sqlite"},
		{"lease", "lease", "`DURATION` that an execution without a sign of life belongs to its process"},
		{"heartbeat", "heartbeat", "time between two signs of life, a `DURATION`"},
		{"log-level", "log.level", "`LEVEL` of the log: debug, info, warn or error"},
		{"log-format", "log.format", "`FORM` of the log: text or json"},
	}
}

func (env *environment) addGlobalFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&env.config, "config", "", "settings `FILE` (default: surfin.yaml in the working directory, if there is one)")
	f.StringVar(&env.as, "as", "", "the `PERSON` in whose name the command acts, for the audit (default: the user and the host)")
	f.BoolVar(&env.debug, "debug", false, "log everything, and show the stack of a panic")
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

// The formats of a result.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatCSV   = "csv"
)

type formatFlag struct {
	value   *string
	allowed []string
}

func (f *formatFlag) String() string {
	if f.value == nil { // of cobra's own
		return ""
	}
	return *f.value
}
func (f *formatFlag) Type() string { return "FORMAT" }
func (f *formatFlag) Set(text string) error {
	if !slices.Contains(f.allowed, text) {
		return errors.New("allowed: " + joinWords(f.allowed))
	}
	*f.value = text
	return nil
}

func completeFlag(cmd *cobra.Command, name string, values ...string) {
	complete := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // the flag is not defined: a mistake in this package
	}
}

// start runs before every command: later errors are no longer usage errors.
func (env *environment) start(cmd *cobra.Command) error {
	env.started = true
	if name := cmd.Name(); name != "worker" && name != "serve" { // these return an answer, or retry, by themselves
		cmd.SetContext(model.WithPatience(cmd.Context(), lease.Waiting))
	}
	if err := env.actAs(cmd); err != nil {
		return err
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, s := range settingFlags() {
			if s.name == f.Name {
				env.flags = append(env.flags, settings.Flag{Name: "--" + f.Name, Key: s.key, Value: f.Value.String()})
			}
		}
	})
	return nil
}

// actAs sets the actor of the command (rule OP4). It includes the system's user, because --as is
// not verified.
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

const maxPerson = 200

// command returns a command line for people to copy: the program's name, the words, and the flags
// of this invocation that select the database.
func (env *environment) command(args ...string) string {
	args = append([]string{env.app.Name}, args...)
	if env.config != "" {
		args = append(args, "--config", env.config)
	}
	for _, f := range env.flags {
		if f.Name == "--database-url" {
			args = append(args, f.Name, secret.Text(f.Value))
		}
	}
	for i, w := range args {
		args[i] = shellQuote(w)
	}
	return strings.Join(args, " ")
}

func shellQuote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=./:@%+,", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

const settingsName = "settings"

// settingsTopic is `help settings`; taskCommands.settingsCommand adds the commands that change the
// settings that processes share.
func (c fileCommands) settingsTopic() *cobra.Command {
	topic := &cobra.Command{
		Use:   settingsName,
		Short: "Settings: surfin.yaml, environment variables and flags",
	}
	topic.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd == topic {
			cmd.Long = settingsText() // only now: the layout takes longer than most commands
		}
		cmd.Root().HelpFunc()(cmd, args)
	})
	return topic
}

func settingsText() string {
	rows := [][]string{}
	for _, r := range settings.Reference() {
		rows = append(rows, r[:])
	}
	return settingsOrder() + "\n\n" + sharedSettings + "\n\n" + renderTable([]column{{title: settings.FileName}, {title: "variable"}, {title: "default"}, {title: "meaning"}}, rows)
}

func settingsOrder() string {
	return `Flags win over environment variables, which win over ` + settings.FileName + ` of the
working directory (or --config FILE), which wins over the defaults. None is
needed. A relative sqlite path in ` + settings.FileName + ` is relative to that file.`
}
