package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// ManualPage is the page of a command.
type ManualPage struct {
	Name, Use, Short, Long, Example string
	Title                           string // the heading of the options
	Options                         []ManualOption
	see                             []string // the pages of the parent command and of the subcommands
}

// ManualOption is a flag with its value, or a setting.
type ManualOption struct{ Term, Text string }

// Manual returns the pages of all commands, in order.
func Manual(app App) []ManualPage { return manualPages(newRoot(&environment{app: app})) }

func (p ManualPage) file() string { return strings.ReplaceAll(p.Name, " ", "-") }

func manualPages(cmd *cobra.Command) []ManualPage {
	cmd.InitDefaultHelpFlag()
	p := ManualPage{
		Name: cmd.CommandPath(), Use: cmd.UseLine(), Short: cmd.Short, Long: cmd.Long, Example: outdented(cmd.Example), Title: "Options",
		Options: optionsOf(cmd),
	}
	if cmd.HasParent() {
		p.see = append(p.see, cmd.Parent().CommandPath())
	}
	if cmd.Name() == settingsName {
		p.Long, p.Title, p.Options = settingsOrder()+"\n\n"+sharedSettings, "Settings", settingsOptions()
	}
	var below []ManualPage
	for _, sub := range cmd.Commands() {
		if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		p.see = append(p.see, sub.CommandPath())
		below = append(below, manualPages(sub)...)
	}
	return append([]ManualPage{p}, below...)
}

func optionsOf(cmd *cobra.Command) (all []ManualOption) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" && cmd.HasParent() {
			return
		}
		value, text := pflag.UnquoteUsage(f)
		term := "--" + f.Name
		if f.Shorthand != "" {
			term = "-" + f.Shorthand + ", " + term
		}
		if value != "" {
			term += " " + value
		}
		switch f.DefValue {
		case "", "false", "0", "0s", "[]":
		default:
			text += " (default " + f.DefValue + ")"
		}
		all = append(all, ManualOption{term, text})
	})
	return all
}

func settingsOptions() (all []ManualOption) {
	for _, r := range settings.Reference() {
		term, text := r[0]+", "+r[1], r[3]
		if r[2] != "" {
			text += " (default " + r[2] + ")"
		}
		all = append(all, ManualOption{term, text})
	}
	return all
}

func outdented(example string) string {
	var lines []string
	for line := range strings.Lines(strings.Trim(example, "\n")) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func (p ManualPage) manText(program, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" 1 \"\" \"%s %s\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(p.file()), program, version, p.file(), manLine(p.Short))
	if p.Use != "" {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", manLine(p.Use))
	}
	if p.Long != "" {
		b.WriteString(".SH DESCRIPTION\n" + manParagraphs(p.Long))
	}
	if len(p.Options) > 0 {
		b.WriteString(".SH " + strings.ToUpper(p.Title) + "\n")
	}
	for _, o := range p.Options {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", manLine(o.Term), manLine(o.Text))
	}
	if p.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n" + manLines(p.Example) + ".fi\n")
	}
	if len(p.see) > 0 {
		var refs []string
		for _, name := range p.see {
			refs = append(refs, manLine(strings.ReplaceAll(name, " ", "-"))+"(1)")
		}
		b.WriteString(".SH SEE ALSO\n" + strings.Join(refs, ",\n") + "\n")
	}
	return b.String()
}

func manParagraphs(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			b.WriteString(".nf\n" + manLines(paragraph) + ".fi\n")
			continue
		}
		b.WriteString(manLines(paragraph))
	}
	return b.String()
}

func manLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(manLine(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

func manLine(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

func (c fileCommands) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages of all commands into a folder, for man(1)",
		Example: "  " + c.env.app.Name + " man ~/.local/share/man/man1",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(errors.New("which folder?"), "usage:  "+cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.writeManual(cmd.Root(), args[0]) },
	}
}

func (c fileCommands) writeManual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("folder of the manual: %w", err)
	}
	pages := manualPages(root)
	for _, p := range pages {
		file := filepath.Join(dir, p.file()+".1")
		if err := os.WriteFile(file, []byte(p.manText(c.env.app.Name, c.env.app.Version)), 0o644); err != nil {
			return fmt.Errorf("page of the manual: %w", err)
		}
	}
	return c.env.print(fmt.Sprintf("%d pages in %s; the first is %s.1\n", len(pages), dir, pages[0].file()))
}
