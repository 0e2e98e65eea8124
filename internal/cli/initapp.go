package cli

import (
	"cmp"
	"errors"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/draft"
	"github.com/surfin-batch/surfin/internal/humanize"
)

func (c fileCommands) initAppCommand() *cobra.Command {
	var app draft.Application
	var dir, replace string
	var force bool
	cmd := &cobra.Command{
		Use:   "app NAME",
		Short: "Write a Go program with a reader, a processor and a writer of its own, and a job that uses them",
		Long: `Writes a small Go program into the folder NAME: main.go, its components, a job that
uses them, data, a test, a README, a Makefile and go.mod. The program is this command
with the components built in. An existing file is replaced only with --force.

go.mod requires the version of this surfin. A development build has none: go.mod then
takes surfin from a checkout (replace): that of --replace, the one that contains NAME, or
a folder "surfin" next to it.`,
		Example: "  " + c.env.app.Name + " init app readings\n  cd readings && go test . && go run . run readings.yaml",
		Args:    exactly(1, "which name?"),
		RunE: func(_ *cobra.Command, args []string) error {
			app.Name = args[0]
			return c.startApp(app, cmp.Or(dir, app.Name), replace, force)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the `FOLDER` of the program (default: NAME)")
	cmd.Flags().StringVar(&app.Module, "module", "", "the `PATH` of its Go module (default: NAME)")
	addWith(cmd, &app.With)
	cmd.Flags().StringVar(&replace, "replace", "", "take surfin from the checkout in `DIR`")
	cmd.Flags().BoolVar(&force, "force", false, "replace existing files")
	return cmd
}

func (c fileCommands) startApp(app draft.Application, dir, replace string, force bool) (err error) {
	if err := app.CheckName(); err != nil {
		return usage(err)
	}
	if app.With, err = families(app.With); err != nil {
		return usage(err)
	}
	if err := version(&app, dir, replace); err != nil {
		return err
	}
	files, err := app.Files()
	if err != nil {
		return usage(err)
	}
	text, err := writeDraft(files, dir, force)
	if err != nil {
		return err
	}
	first := "cd " + humanize.Quote(dir)
	if app.Checkout == nil {
		first += " && go mod tidy"
	}
	return c.env.print(text + "\ntest it:  " + first + " && go test .\nrun it:   " + first + " && go run . run " + app.Name + ".yaml\n")
}

// version sets where the program in dir takes surfin from.
func version(app *draft.Application, dir, replace string) (err error) {
	app.Version, app.Go = surfinVersion(), strings.TrimPrefix(runtime.Version(), "go")
	if app.Checkout, err = checkoutFor(dir, replace); err != nil {
		return usage(err)
	}
	if app.Checkout == nil && app.Version == "" {
		return usage(errors.New("a go.mod cannot require this development build of surfin, and no checkout contains "+dir),
			"take surfin from a checkout:  --replace DIR")
	}
	return nil
}

func checkoutFor(dir, replace string) (*draft.Checkout, error) {
	var c *draft.Checkout
	var err error
	if replace == "" {
		c, err = draft.FindCheckout(dir)
	} else {
		c, err = draft.ReadCheckout(replace)
	}
	if err != nil || c == nil {
		return nil, err
	}
	if filepath.IsAbs(replace) {
		return c, nil
	}
	rel, err := relativeTo(dir, c.Folder)
	if err != nil {
		c.Folder, err = filepath.Abs(c.Folder)
		return c, err
	}
	if !strings.HasPrefix(rel, "../") {
		rel = "./" + rel
	}
	c.Folder = rel
	return c, nil
}

func surfinVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	version := ""
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == draft.Module && m.Replace == nil {
			version = m.Version
		}
	}
	if !strings.HasPrefix(version, "v") || strings.ContainsAny(version, "+") || strings.HasPrefix(version, "v0.0.0-") {
		return ""
	}
	return version
}
