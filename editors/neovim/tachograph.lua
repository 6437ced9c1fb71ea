-- Figures of a recording beside the code, in Neovim 0.10 or later: require("tachograph").setup()
local M = {}

local commands = {
  TachographRecording = "tachograph.chooseRecording",
  TachographMetric = "tachograph.chooseMetric",
  TachographScope = "tachograph.chooseScope",
  TachographCompare = "tachograph.compareWith",
}

local function client()
  return vim.lsp.get_clients({ name = "tachograph" })[1]
end

-- options.cmd: the command of the server, by default { "tachograph", "lsp" }; add a folder to look for recordings there.
function M.setup(options)
  options = options or {}
  vim.api.nvim_create_autocmd("FileType", {
    pattern = "python",
    callback = function(event)
      local root = vim.fs.root(event.buf, { "pyproject.toml", "setup.py", ".git" }) or vim.fn.getcwd()
      vim.lsp.start({ name = "tachograph", cmd = options.cmd or { "tachograph", "lsp" }, root_dir = root },
        { bufnr = event.buf })
    end,
  })
  vim.api.nvim_create_autocmd("LspAttach", {
    callback = function(event)
      local attached = vim.lsp.get_client_by_id(event.data.client_id)
      if attached and attached.name == "tachograph" then
        vim.lsp.inlay_hint.enable(true, { bufnr = event.buf })
        if vim.lsp.codelens.enable then
          vim.lsp.codelens.enable(true, { bufnr = event.buf })
        else -- before 0.12: asked for now, and whenever the buffer is entered or was edited
          vim.lsp.codelens.refresh({ bufnr = event.buf })
          vim.api.nvim_create_autocmd({ "BufEnter", "InsertLeave" }, {
            buffer = event.buf,
            callback = function() vim.lsp.codelens.refresh({ bufnr = event.buf }) end,
          })
        end
      end
    end,
  })
  for name, command in pairs(commands) do
    vim.api.nvim_create_user_command(name, function(call)
      local server = client()
      if server then
        server.request("workspace/executeCommand", { command = command, arguments = call.fargs })
      end
    end, { nargs = "?" })
  end
end

return M
