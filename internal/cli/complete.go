package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

func completeJobFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

func (c runCommands) completeRun(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeJobFiles(cmd, args, word)
	}
	if strings.Contains(word, "=") {
		return nil, cobra.ShellCompDirectiveDefault // the value may be a file
	}
	file, err := c.env.loadJobFile(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var words []string
	for _, spec := range file.Parameters() {
		given := func(arg string) bool { return strings.HasPrefix(arg, spec.Name+"=") }
		if !slices.ContainsFunc(args, given) {
			words = append(words, spec.Name+"=\t"+spec.Doc)
		}
	}
	return words, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

func (env *environment) completeExecution(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if err := env.start(cmd); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var words []string
	err := env.read(cmd.Context(), func(s *Session) error {
		page, err := s.Service.List(cmd.Context(), operator.ListRequest{Limit: 30})
		for _, e := range page.Executions {
			words = append(words, wording.ID(e.ID)+"\t"+e.JobName+" "+string(e.Status)+" "+humanize.Time(e.StartedAt))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func (c fileCommands) completeComponents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var words []string
	for _, component := range c.env.app.Registry.Components() {
		words = append(words, component.Name+"\t"+component.Summary)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
