// Command surfin runs jobs written in YAML with the components that are shipped.
package main

import "github.com/surfin-batch/surfin/pkg/batch"

func main() { batch.Main() }
