package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linked   = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	title    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unlinked = regexp.MustCompile(`[^\w -]`)
)

// anchors returns what links into a page can name.
func anchors(text string) map[string]bool {
	all := map[string]bool{"": true}
	for _, m := range title.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// TestLinksOfPages: what pages link to is there, and the README leads to every page.
func TestLinksOfPages(t *testing.T) {
	reached := make(map[string]bool)
	for _, p := range all(t) {
		text, err := os.ReadFile(filepath.Join("..", "..", p.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linked.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := p.name
			if path != "" {
				target = filepath.Join(filepath.Dir(p.name), path)
			}
			if p.name == "README.md" {
				reached[target] = true
			}
			there, err := os.ReadFile(filepath.Join("..", "..", target))
			if err != nil {
				t.Errorf("%s links to %s: %v", p.name, m[1], err)
			} else if strings.HasSuffix(target, ".md") && !anchors(string(there))[anchor] {
				t.Errorf("%s links to %s: the page has no such heading", p.name, m[1])
			}
		}
	}
	for _, p := range all(t) {
		if p.name != "README.md" && !reached[p.name] {
			t.Errorf("the README does not lead to %s", p.name)
		}
	}
}
