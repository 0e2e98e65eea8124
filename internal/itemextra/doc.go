// Package itemextra has the optional interfaces of items that only the shipped components implement: a
// reader that warns, a writer that counts the rows its target left out. The chunk step asks for them once, when
// it starts. The interfaces for authors are in core/item.
//
// It imports core/item only.
package itemextra
