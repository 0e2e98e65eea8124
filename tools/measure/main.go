// Command measure prints the measures of the code base and compares them with their ceilings.
//
//	make measure                   print all measures, fail if one exceeds its ceiling
//	make measure FLAGS=-lower      write ceilings that have room down to the measures of today
//	make measure FLAGS='-list what'  print the lines with a word or idiom
//
// The ceilings are in ceilings.txt. They only fall: a commit that raises one says why.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	root := flags.String("root", "..", "folder of the project's go.mod")
	lower := flags.Bool("lower", false, "lower the ceilings to the measures of today")
	list := flags.String("list", "", "print the lines with this word or idiom")
	if err := flags.Parse(args); err != nil {
		return err
	}
	tree, err := readTree(*root)
	if err != nil {
		return err
	}
	if *list != "" {
		return listIdiom(out, tree, *list)
	}
	measures, err := measureAll(tree)
	if err != nil {
		return err
	}
	path := filepath.Join(*root, "tools", "measure", "ceilings.txt")
	ceilings, err := readCeilings(path)
	if err != nil {
		return err
	}
	if *lower {
		return writeCeilings(path, lowered(measures, ceilings))
	}
	printTable(out, measures, ceilings)
	return exceeded(measures, ceilings)
}

// measureAll takes every measure of the tree.
func measureAll(t *tree) ([]measure, error) {
	direct, err := directModules(filepath.Join(t.root, "go.mod"))
	if err != nil {
		return nil, err
	}
	measures := []measure{{"modules", "direct", float64(direct)}}
	for _, take := range []func(*tree) []measure{lines, exported, folders, methods, interfaces, circles, words} {
		measures = append(measures, take(t)...)
	}
	return measures, nil
}

var errExceeded = errors.New("a measure exceeds its ceiling; make the code smaller, or say in the commit why tools/measure/ceilings.txt rises")
