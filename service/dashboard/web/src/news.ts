// A run that goes on has news: the page's bundles tell each other by this event of the document.
export const NEWS = "backprobe-news";
