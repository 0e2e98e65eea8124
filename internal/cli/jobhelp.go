package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// A help function cannot fail, so it prints the error of a wrong file.
func (c runCommands) jobHelp(cmd *cobra.Command, path string) {
	file, err := c.env.loadJobFile(path)
	if err != nil {
		c.env.report(err)
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Job %s (%s)\n", file.Name(), path)
	if text := strings.TrimSpace(file.Description()); text != "" {
		b.WriteString("\n" + text + "\n")
	}
	fmt.Fprintf(&b, "\nUsage:\n  %s %s %s", c.env.app.Name, cmd.Name(), humanize.Quote(path))
	if len(file.Parameters()) > 0 {
		b.WriteString(" [NAME=VALUE ...]")
	}
	b.WriteString(" [flags]\n\nSteps:\n  " + strings.Join(file.Steps(), ", ") + "\n")
	if specs := file.Parameters(); len(specs) > 0 {
		b.WriteString("\nParameters:\n" + indent(specTable(specs)))
	}
	if name := file.Incrementer(); name != "" {
		b.WriteString("\nThe next instance:\n  " + name + " is counted on\n")
	}
	b.WriteString("\nFlags:\n" + cmd.LocalFlags().FlagUsages())
	_ = c.env.print(b.String()) //nolint:errcheck // a help function cannot fail
}

func specTable(specs []core.ParameterSpec) string {
	rows := make([][]string, len(specs))
	for i, s := range specs {
		fallback := "required"
		if s.Default != nil {
			fallback = specText(s, s.Default)
		} else if !s.Required {
			fallback = "-"
		}
		rows[i] = []string{s.Name, string(s.Type), fallback, limits(s), s.Doc}
	}
	return renderTable([]column{{title: "name"}, {title: "type"}, {title: "default"}, {title: "allowed"}, {title: "description"}}, rows)
}

func limits(s core.ParameterSpec) string {
	var words []string
	if len(s.Enum) > 0 {
		words = append(words, strings.Join(s.Enum, ", "))
	}
	if s.Min != nil {
		words = append(words, "from "+specText(s, s.Min))
	}
	if s.Max != nil {
		words = append(words, "to "+specText(s, s.Max))
	}
	if s.Pattern != "" {
		words = append(words, "like "+s.Pattern)
	}
	if s.Secret {
		return "(secret: NAME=@FILE, or " + secret.Variable(s.Name) + ")"
	}
	if !s.Identifying {
		words = append(words, "(not identifying)")
	}
	return strings.Join(words, " ")
}

func specText(s core.ParameterSpec, value any) string {
	text, err := core.Parameter{Name: s.Name, Type: s.Type, Value: value}.Canonical()
	if err != nil {
		return fmt.Sprint(value) // the loader has checked it
	}
	return text
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
