package main

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const springPrefix = "Spring Batch"

// springFolder has Spring Batch, from the folder of the module, where the driver runs.
const springFolder = "bench/springbatch"

// spring is a contestant in Java.
type spring struct {
	name, work string
	chunk      int
	// warm is how many jobs its process runs before the measured one.
	warm int
	// parts is how many the file is divided into; 0 means that the step has none.
	parts int
	once  bool              // it is not killed
	of    func(w Work) Work // its part of the work; nil means all
}

// springs is a chunk step in a process of one job, as a command starts it, and as the third job of its
// process, when its code is compiled.
func springs(work string, chunk int) []Contestant {
	return []Contestant{
		spring{name: fmt.Sprintf("%s, %d", springPrefix, chunk), work: work, chunk: chunk},
		spring{name: fmt.Sprintf("%s, third job, %d", springPrefix, chunk), work: work, chunk: chunk, warm: 2, once: true},
	}
}

// springParts is a partitioned step with two threads.
func springParts(chunk int) []Contestant {
	name := fmt.Sprintf("two parts, %d", chunk)
	return []Contestant{
		spring{name: springPrefix + ", " + name, work: "load-parts", chunk: chunk, parts: 2},
		spring{name: springPrefix + ", third job, " + name, work: "load-parts", chunk: chunk, parts: 2, warm: 2, once: true},
	}
}

func (c spring) Name() string { return c.name }

func (c spring) Restarts() bool { return !c.once }

func (c spring) Result(stdout []byte) (Result, error) { return parseResult(stdout) }

// Build runs Maven, which downloads missing files.
func (c spring) Build(ctx context.Context, b *bench) error { return buildSpring(ctx, b.dir, b.spring) }

func springTarget(dir string) string { return filepath.Join(dir, "springbatch") }

// buildSpring builds with a version of Spring Batch; empty means the one in pom.xml.
func buildSpring(ctx context.Context, dir, version string) error {
	args := []string{"-q", "-B", "-f", filepath.Join(springFolder, "pom.xml"), "package", "-Dbench.target=" + springTarget(dir)}
	if version != "" {
		args = append(args, "-Dspring-batch.version="+version)
	}
	cmd := exec.CommandContext(ctx, "mvn", args...) //nolint:gosec // of this module
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn package: %w\n%s", err, out)
	}
	return nil
}

func (c spring) Command(w Work) (*exec.Cmd, error) {
	if c.of != nil {
		w = c.of(w)
	}
	return springCommand(w, "2g", map[string]string{
		"work": c.work, "url": w.URL, "input": w.Input, "output": outputOf(w), "chunk": strconv.Itoa(c.chunk),
		"rows": strconv.Itoa(w.Rows), "parts": strconv.Itoa(c.parts), "warm": strconv.Itoa(c.warm), "kill_at": strconv.FormatInt(w.KillAt, 10),
	}), nil
}

// springCommand is a JVM with a heap of fixed size, so that it is not resized meanwhile.
func springCommand(w Work, heap string, options map[string]string) *exec.Cmd {
	target := springTarget(filepath.Dir(w.Dir))
	classes := filepath.Join(target, "classes") + string(filepath.ListSeparator) + filepath.Join(target, "lib", "*")
	args := []string{"-Xms" + heap, "-Xmx" + heap, "-cp", classes, "bench.Main"}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		args = append(args, name+"="+options[name])
	}
	cmd := exec.Command("java", args...) //nolint:gosec // our own classes
	cmd.Dir = w.Dir
	return cmd
}

func springVersion(dir string) (string, error) {
	const before, after = "spring-batch-core-", ".jar"
	found, err := filepath.Glob(filepath.Join(springTarget(dir), "lib", before+"*"+after))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%s has not one version of Spring Batch but %d: %w", springTarget(dir), len(found), err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), before), after), nil
}
