// Starts everything, and what belongs to no single part: addresses.

function followAddresses(views) {
  let following = false;
  const isSection = ({ file, line }) => file !== null && line === null && document.getElementById(file) !== null;
  const follow = () => {
    const told = readAddress(location.hash);
    if (!told) return;
    following = true;
    const { view, search, sort } = told.settings;
    if (view !== undefined) views.choose(view);
    if (search !== undefined) {
      byId("search").value = search;
      views.state.change({ search });
    }
    if (sort !== undefined) views.sortLines(sort);
    if (told.window) {
      const { start, width, count: spans } = views.state.data.bins;
      const [low, high] = told.window.map((at) => Math.max(0, Math.min(spans, Math.round((at - start) / width))));
      if (low < high) views.state.change({ from: low, to: high });
    }
    following = false;
    if (told.file && !isSection(told) && !views.places.reveal(told.file, told.line)) say("That line has no time in this window");
  };
  // The address has what is shown, so that it can be handed on. The line in it stays.
  views.changed = () => {
    if (following) return;
    const told = readAddress(location.hash);
    const place = told && !isSection(told) ? told : { file: null, line: null };
    const hash = address(place.file, place.line, views.state);
    try {
      history.replaceState(null, "", hash === "#" ? location.pathname + location.search : hash);
    } catch {
      // A page inside of a notebook has no address of its own.
    }
  };
  addEventListener("hashchange", follow);
  // The same link, clicked again, brings its line back into view.
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) follow();
  });
  follow();
}

openPage((doc, block) => {
  const views = new Views(doc, block);
  const measureBar = () => document.documentElement.style.setProperty("--bar", `${byId("bar").offsetHeight + 12}px`);
  addEventListener("resize", measureBar);
  measureBar();
  followAddresses(views);
  return (search) => views.state.change({ search });
}, "report");
