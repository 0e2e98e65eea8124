package yamlfile

// Place describes the position of n; "" for a file.
func (d *Document) Place(n *Node) string {
	if d.Describe == nil {
		return ""
	}
	way, found := wayTo(d.Root, n)
	if !found { // it stands for a node of the document at the same position
		way = wayBefore(d.Root, n)
	}
	return d.Describe(way)
}

func wayTo(root, n *Node) (way []Step, found bool) {
	if root == n {
		return nil, true
	}
	for i, item := range root.Items {
		if rest, found := wayTo(item, n); found {
			return append([]Step{{Index: i, In: root}}, rest...), true
		}
	}
	for _, e := range root.Entries {
		rest, found := wayTo(e.Value, n)
		if found || e.Key == n {
			return append([]Step{{Key: e.Key.Text, In: root}}, rest...), true
		}
	}
	return nil, false
}

func wayBefore(root, n *Node) []Step {
	var way []Step
	for root != nil {
		var next *Node
		var step Step
		for i, item := range root.Items {
			if !item.isBehind(n) {
				next, step = item, Step{Index: i, In: root}
			}
		}
		for _, e := range root.Entries {
			if !e.Key.isBehind(n) {
				next, step = e.Value, Step{Key: e.Key.Text, In: root}
			}
		}
		if next == nil {
			break
		}
		way = append(way, step)
		root = next
	}
	return way
}

func (n *Node) isBehind(other *Node) bool {
	return n.Line > other.Line || n.Line == other.Line && n.Col > other.Col
}
