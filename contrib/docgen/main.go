// Command docgen writes the pages of contrib's components into docs/reference, where internal/docgen links them:
//
//	go -C contrib run ./docgen ../docs/reference
//
// It imports contrib, internal/assembly, internal/contrib and internal/jobfile.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/contrib"
	"github.com/surfin-batch/surfin/internal/assembly"
	known "github.com/surfin-batch/surfin/internal/contrib"
	"github.com/surfin-batch/surfin/internal/jobfile/docs"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: docgen FOLDER")
	}
	full, err := assembly.NewRegistry(contrib.Module())
	if err != nil {
		return err
	}
	pages := docs.Reference(full)
	for _, c := range known.Components() {
		name := c.Page()
		if err := os.WriteFile(filepath.Join(args[0], name), pages[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
