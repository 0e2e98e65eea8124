package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/contrib"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/urlpath"
)

type placeCommands struct{ env *environment }

// in returns a context with the places of surfin.yaml, if one of the paths is a URL.
func (c placeCommands) in(ctx context.Context, paths ...string) (context.Context, error) {
	urls := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !urlpath.Is(path) })
	if len(urls) == 0 {
		return ctx, nil
	}
	for _, url := range urls {
		if err := c.has(url); err != nil {
			return nil, err
		}
	}
	if err := c.env.configure(); err != nil {
		return nil, err
	}
	set, err := operator.NewPlaces(c.env.app.Registry, c.env.settings.Places, c.env.settings.Secrets.Lookup)
	if err != nil {
		return nil, usage(err)
	}
	return place.With(ctx, set), nil
}

func (c placeCommands) has(url string) error {
	scheme := urlpath.Scheme(url)
	known := c.env.app.Registry.Names(urlpath.Kind)
	if slices.Contains(known, scheme) {
		return nil
	}
	if lacking, is := contrib.Find(urlpath.Kind, scheme); is {
		return usage(fmt.Errorf("%s: %s", url, lacking.Lacks()), contrib.Cure(lacking.Family))
	}
	return usage(fmt.Errorf("%s: %w", url, &place.LackingError{Scheme: scheme, Known: known}))
}

func (c placeCommands) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "places",
		Short: "Check the places that have files, such as buckets",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.checkCommand())
	return cmd
}

func (c placeCommands) checkCommand() *cobra.Command {
	readOnly := false
	cmd := &cobra.Command{
		Use:   "check URL",
		Short: "Try the requests of jobs at a place",
		Long: `Makes the requests of jobs at a file, or in a folder, with the credentials of surfin.yaml: list and read, write a file,
continue it as after a kill, publish it, notice that it was replaced, end a publication of a frozen attempt, and remove it.
Nothing is left. The exit code is 1 if something fails. --read-only writes nothing.`,
		Example: "  " + c.env.app.Name + " places check s3://lake/in\n  " + c.env.app.Name + " places check s3://lake/in/orders.csv --read-only",
		Args:    exactly(1, "which URL? such as s3://bucket/folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !urlpath.Is(args[0]) {
				return usagef("%s is no URL of a place, such as s3://bucket/folder", args[0])
			}
			ctx, err := c.in(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			found, err := place.Check(ctx, args[0], !readOnly)
			if err != nil {
				return usage(err)
			}
			return c.show(found)
		},
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "write nothing")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c placeCommands) show(found []place.Finding) error {
	text, failed := "", false
	for _, one := range found {
		if one.Error == "" {
			text += "ok      " + one.Name + "\n"
			continue
		}
		failed = true
		text += "FAILED  " + one.Name + ": " + one.Error + "\n"
	}
	var err error
	if c.env.format == formatJSON {
		err = c.env.printJSON(found)
	} else {
		err = c.env.print(text)
	}
	if err == nil && failed {
		err = errors.New("the place does not serve jobs")
	}
	return err
}
