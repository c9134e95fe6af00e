"""The reader of ``.hush`` files for web pages, in Node and in a browser, against Python."""
