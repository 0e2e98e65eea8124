package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/contrib"
	"github.com/surfin-batch/surfin/internal/draft"
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/nearest"
)

func (c fileCommands) buildCommand() *cobra.Command {
	var with, jobs []string
	var out, replace string
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build a surfin with some families of contrib, which the lean one leaves out",
		Long: `Builds a program with the commands of surfin, metrics, traces, and the named families of
contrib, with the go command: from the version of this surfin, or from a checkout. Nothing is
downloaded if Go's module cache has the modules.`,
		Example: "  " + c.env.app.Name + " build --with parquet -o surfin-parquet\n  " + c.env.app.Name + " build --for 'jobs/*.yaml' -o surfin-jobs",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, pattern := range jobs {
				used, err := c.familiesOf(pattern)
				if err != nil {
					return usage(err)
				}
				with = append(with, used...)
			}
			return c.build(cmd.Context(), with, out, replace)
		},
	}
	addWith(cmd, &with)
	cmd.Flags().StringSliceVar(&jobs, "for", nil, "the families that these job `FILES` use, by their components; also a pattern")
	cmd.Flags().StringVarP(&out, "output", "o", c.env.app.Name, "the `FILE` of the program")
	cmd.Flags().StringVar(&replace, "replace", "", "take surfin from the checkout in `DIR`")
	return cmd
}

func addWith(cmd *cobra.Command, with *[]string) {
	cmd.Flags().StringSliceVar(with, "with", nil, "these `FAMILIES` of contrib: "+humanize.Join(contrib.Families()))
	completeFlag(cmd, "with", contrib.Families()...)
}

// familiesOf checks the job files without contrib: the families that they lack are those to build with.
func (c fileCommands) familiesOf(pattern string) (families []string, err error) {
	lean, err := contrib.Without(c.env.app.Registry)
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(pattern)
	if err == nil && len(paths) == 0 {
		err = errors.New("no such file")
	}
	if err != nil {
		return nil, fmt.Errorf("--for %s: %w", pattern, err)
	}
	var wrong jobfile.Problems
	for _, path := range paths {
		_, err := jobfile.Load(path, lean)
		var problems jobfile.Problems
		if !errors.As(err, &problems) && err != nil {
			return nil, err
		}
		for _, p := range problems {
			if families = append(families, p.Family); p.Family == "" {
				wrong = append(wrong, p)
			}
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return families, nil
}

func families(with []string) ([]string, error) {
	known := contrib.Families()
	for _, family := range with {
		if !slices.Contains(known, family) {
			return nil, fmt.Errorf("--with %s: contrib has no such family%s; known: %s", family, nearest.Hint(family, known), humanize.Join(known))
		}
	}
	list := slices.Sorted(slices.Values(with))
	return slices.Compact(list), nil
}

func (c fileCommands) build(ctx context.Context, with []string, out, replace string) (err error) {
	app := draft.Application{Name: "surfin"}
	if app.With, err = families(with); err != nil {
		return usage(err)
	}
	if err := version(&app, ".", replace); err != nil {
		return err
	}
	if app.Checkout != nil {
		if app.Checkout.Folder, err = filepath.Abs(app.Checkout.Folder); err != nil {
			return usage(err)
		}
	}
	if out, err = filepath.Abs(out); err != nil {
		return usage(err)
	}
	files, err := app.Program()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "surfin-build-")
	if err != nil {
		return fmt.Errorf("a folder for the program: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err = writeDraft(files, dir, false); err != nil {
		return err
	}
	if err := compile(ctx, dir, out); err != nil {
		return usage(err)
	}
	return c.env.print(out + " is built with " + humanize.Join(append([]string{"metrics", "traces"}, app.With...)) + "\n")
}

func compile(ctx context.Context, dir, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", out, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("go is not installed (https://go.dev/doc/install), or take the released surfin, which has all families")
	case err != nil:
		return fmt.Errorf("go build: %w\n%s", err, strings.TrimSpace(said.String()))
	}
	return nil
}
