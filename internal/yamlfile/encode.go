package yamlfile

import (
	"bytes"
	"fmt"

	"gopkg.in/yaml.v3"
)

// Encode writes a document with the indent of job files.
func Encode(root *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write the job as YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write the job as YAML: %w", err)
	}
	return b.Bytes(), nil
}
