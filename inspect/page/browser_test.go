package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// chromium runs a headless browser with a profile of its own.
func chromium(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("no chromium in PATH; install it: apt-get install chromium")
		}
		t.Skip("no chromium in PATH: how pages look is not tested; apt-get install chromium")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var out, err bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--user-data-dir=" + t.TempDir(),
	}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &err
	cmd.WaitDelay = 5 * time.Second
	if e := cmd.Run(); e != nil {
		t.Fatalf("%v\n%s", e, err.String())
	}
	return out.String(), err.String()
}

// judge is what the browser measures of a page in a frame of some width.
const judge = `<!DOCTYPE html><meta charset="utf-8"><pre id="result"></pre>%s<script>
addEventListener("load", () => {
  const result = []
  for (const frame of document.querySelectorAll("iframe")) {
    const d = frame.contentDocument, wide = d.documentElement.clientWidth, bad = []
    const shown = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0 }
    const meet = (a, b) => a.left < b.right - .5 && b.left < a.right - .5 && a.top < b.bottom - .5 && b.top < a.bottom - .5
    for (const box of d.querySelectorAll(".x, .y, figcaption, tr, .row, .facts")) {
      const labels = [...box.querySelectorAll("span, h3, li, td, th, em, dt, dd")].filter(shown)
      for (let i = 0; i < labels.length; i++) for (let j = i + 1; j < labels.length; j++)
        if (!labels[i].contains(labels[j]) && meet(labels[i].getBoundingClientRect(), labels[j].getBoundingClientRect()))
          bad.push("overlap: " + labels[i].textContent + " | " + labels[j].textContent)
    }
    for (const e of d.querySelectorAll("body *")) {
      const r = e.getBoundingClientRect()
      if (shown(e) && !e.closest("svg") && (r.right > wide + .5 || r.left < -.5)) bad.push("outside: " + e.tagName + " " + e.className + " " + e.textContent.slice(0, 40))
    }
    for (const f of d.querySelectorAll("figure")) {
      const box = f.getBoundingClientRect()
      for (const e of f.querySelectorAll("span, em, p, li")) {
        const r = e.getBoundingClientRect()
        if (shown(e) && (r.right > box.right || r.left < box.left)) bad.push("outside its figure: " + e.textContent)
      }
    }
    const size = parseFloat(d.defaultView.getComputedStyle(d.querySelector("h1")).fontSize)
    result.push({width: wide, scroll: d.documentElement.scrollWidth, bad: bad.slice(0, 10), heading: size, text: d.body.innerText.length,
      background: d.defaultView.getComputedStyle(d.body).backgroundColor, paths: d.querySelectorAll("path").length})
  }
  document.getElementById("result").textContent = JSON.stringify(result)
})
</script>`

type verdict struct {
	Width, Scroll, Text, Paths int
	Heading                    float64
	Bad                        []string
	Background                 string
}

// look shows pages, each in a desktop's and a telephone's width.
func look(t *testing.T, pages [][]byte, dark bool) []verdict {
	t.Helper()
	frames := ""
	for _, page := range pages {
		for _, width := range widths {
			frames += fmt.Sprintf(`<iframe style="border:0;width:%dpx;height:900px" srcdoc="%s"></iframe>`, width, html.EscapeString(string(page)))
		}
	}
	file := filepath.Join(t.TempDir(), "judge.html")
	if err := os.WriteFile(file, fmt.Appendf(nil, judge, frames), 0o600); err != nil {
		t.Fatal(err)
	}
	scheme := 1
	if dark {
		scheme = 0
	}
	out, log := chromium(t, fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme), "--window-size=1700,1000", "--dump-dom", "file://"+file)
	for line := range strings.Lines(log) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the browser complains: %s", line)
		}
	}
	m := regexp.MustCompile(`(?s)<pre id="result">(.*?)</pre>`).FindStringSubmatch(out)
	var verdicts []verdict
	if m == nil || json.Unmarshal([]byte(html.UnescapeString(m[1])), &verdicts) != nil || len(verdicts) != len(pages)*len(widths) {
		t.Fatalf("no result in %.500s\n%s", out, log)
	}
	return verdicts
}

var widths = []int{1280, 390}

// In a real browser, at two widths, light and dark: nothing sticks out, no two
// labels touch, and nothing is complained about. The browser, which takes long to
// start, has all pages at once.
func TestPagesInABrowser(t *testing.T) {
	all := reports(t)
	names := []string{"empty", "crowded", "udp-loss7", "ether2-single", "fpga-lost-ack-stalls"}
	var pages [][]byte
	for _, name := range names {
		pages = append(pages, render(t, all[name], name))
	}
	light, dark := look(t, pages, false), look(t, pages, true)
	for n, name := range names {
		r := all[name]
		t.Run(name, func(t *testing.T) {
			backgrounds := map[string]bool{}
			for dark, verdicts := range map[bool][]verdict{false: light, true: dark} {
				for i, v := range verdicts[n*len(widths):][:len(widths)] {
					if want := widths[i]; v.Width != want && v.Width != want-15 || v.Scroll > v.Width {
						t.Errorf("%d pixels wide, need to scroll to %d", v.Width, v.Scroll)
					}
					for _, bad := range v.Bad {
						t.Errorf("dark %v, %d pixels: %s", dark, v.Width, bad)
					}
					if want := []float64{30.4, 24}[i]; v.Heading != want {
						t.Errorf("heading of %v pixels at %d, want %v: styles do not apply", v.Heading, v.Width, want)
					}
					if v.Text < 200 || len(r.Flows) > 0 && v.Paths == 0 {
						t.Errorf("%d letters and %d paths", v.Text, v.Paths)
					}
					backgrounds[fmt.Sprintf("%v %s", dark, v.Background)] = true
				}
			}
			if !backgrounds["false rgb(251, 250, 248)"] || !backgrounds["true rgb(20, 23, 26)"] || len(backgrounds) != 2 {
				t.Errorf("backgrounds %v", backgrounds)
			}
		})
	}
}
