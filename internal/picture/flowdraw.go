package picture

const marker = ` marker-end="url(#arrow)"`

func (l *list) draw(c *canvas, x, y int) {
	column := x + l.leftWidth
	for i := range l.boxes {
		b := &l.boxes[i]
		left := column + (l.column-b.width)/2
		b.draw(c, left, y+b.y)
		if i+1 < len(l.boxes) {
			l.down(c, i, column+l.column/2, y)
		}
		b.drawEnds(c, left+b.width, y+b.y)
	}
	for _, j := range l.left {
		l.drawJump(c, j, column, y, -1)
	}
	for _, j := range l.right {
		l.drawJump(c, j, column, y, 1)
	}
}

func (b *box) draw(c *canvas, x, y int) {
	end := c.link(b.Link, b.Title)
	c.rect("node "+b.Class, x, y, b.width, b.height, 6)
	room := (b.width - 2*padding) / glyph
	c.text("title", x+padding, y+baseline, clip(b.Title, room))
	if len(b.flows) == 0 {
		c.text("note", x+padding, y+baseline+textLine, clip(b.Note, room))
		end()
		return
	}
	c.text("note", x+padding+(len([]rune(clip(b.Title, room)))+2)*glyph, y+baseline, clip(b.Note, max(1, room-len([]rune(b.Title))-2)))
	end() // the elements inside have links of their own
	total := branchGap * (len(b.flows) - 1)
	for _, inner := range b.flows {
		total += inner.width
	}
	at := x + (b.width-total)/2
	for i := range b.flows {
		b.flows[i].draw(c, at, y+header+padding)
		at += b.flows[i].width + branchGap
	}
}

// down draws the arrow to the next box.
func (l *list) down(c *canvas, from, x, y int) {
	for _, e := range l.boxes[from].Edges {
		if e.To != l.boxes[from+1].ID {
			continue
		}
		top := y + l.boxes[from].y + l.boxes[from].height
		c.path("edge"+taken(e), marker, x, top, x, top+gap-2)
		if e.Label != "" {
			c.text("label"+taken(e), x+padding/2, top+gap/2+3, clip(e.Label, l.column/glyph))
		}
	}
}

// drawEnds draws the ways out of the flow as labels at the right of the box.
func (b *box) drawEnds(c *canvas, x, y int) {
	for i, e := range b.ends {
		at := y + boxHeight/2 + i*(textLine+2)
		c.path("edge"+taken(e), marker, x, at, x+padding, at)
		label := e.End
		if e.Label != "" {
			label = e.Label + ": " + e.End
		}
		c.text("end"+taken(e), x+padding+4, at+4, clip(label, endWidth/glyph))
	}
}

// drawJump draws an edge in its lane, at the side -1 or 1.
func (l *list) drawJump(c *canvas, j jump, column, y, side int) {
	edge := column
	from, to := &l.boxes[j.from], &l.boxes[j.to]
	startX, endX := column+(l.column-from.width)/2, column+(l.column-to.width)/2
	if side > 0 {
		edge, startX, endX = column+l.column, startX+from.width, endX+to.width
	}
	at := edge + side*(j.lane*lane-padding/2)
	start := y + from.y + from.height - padding/2
	end := y + to.y + padding/2
	c.path("edge jump"+taken(j.edge), marker, startX, start, at, start, at, end, endX, end)
	if j.edge.Label != "" {
		class := "label back"
		if side > 0 {
			class = "label"
		}
		c.text(class+taken(j.edge), startX+side*4, start-3, clip(j.edge.Label, boxMin/glyph))
	}
}

func taken(e Edge) string {
	if e.Taken {
		return " taken"
	}
	return ""
}
